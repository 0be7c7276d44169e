"""forge as a peer: a Workflow on its HTTP interpreter, or on a model in the process; compaction never fires.

The tools do not block, so they are `async def`, as forge's documentation asks; `forge_threads` is the same with
plain functions, which forge runs in threads. Runs in the shared bench as well.
"""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import workload
from _aio import wait
from replies import scripted

import forge
from forge import Limits
from forge.connection import Connection, Setup
from forge.interpreters.http import HttpSender
from stages.effect import Fault, Replied, Send, Undelivered
from stages.wire.openai.chat import decode_reply
from stages.wire.sampling import Sampling

MODES = ("http", "stub")
TERMINAL = "finish"
IMPORT = "import forge"
DIST = "forge-toolcalls"

SAMPLING = Sampling(max_tokens=1024)
"""Made once, as by a program that makes its backend once and runs many workflows on it."""

Function = Callable[..., str]


class Fixed:
    """A backend that is already connected."""

    def __init__(self, send: Callable[[Send], Awaitable[Replied | Undelivered]], model: str) -> None:
        self._connection = Connection(Setup(model=model, context_tokens=10**9, sampling=SAMPLING), send)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        yield self._connection


def in_process(turns: int) -> Fixed:
    """A backend whose replies lie ready as bytes, and are read as those of a server are."""
    ready = scripted(turns, TERMINAL)

    async def send(_: Send) -> Replied | Undelivered:
        answer = decode_reply(next(ready))
        return Undelivered(fault=answer) if isinstance(answer, Fault) else Replied(reply=answer)

    return Fixed(send, "stub")


class Peer:
    """What stays from run to run: the client, the workflow."""

    transport = httpx.AsyncHTTPTransport()
    client = httpx.AsyncClient(timeout=120, transport=transport)
    url = ""
    workflow: forge.Workflow


def asynchronous(function: Function) -> Callable[..., Awaitable[str]]:
    """The same function for the event loop."""

    @functools.wraps(function)
    async def on_the_loop(*args: object, **kwargs: object) -> str:
        return function(*args, **kwargs)

    return on_the_loop


def define(functions: list[Callable[..., object]]) -> forge.Workflow:
    """The workflow of these tools, `finish` among them."""
    return forge.Workflow(
        "bench",
        tools=functions,
        terminal_tool=TERMINAL,
        system_prompt=workload.SYSTEM,
        limits=Limits(max_iterations=2000),
    )


def setup(base_url: str) -> None:
    Peer.url = base_url
    Peer.workflow = define([asynchronous(function) for function in (*workload.TOOLS.values(), workload.finish)])


def run(turns: int, model: str, mode: str) -> None:
    backend = (
        Fixed(HttpSender(Peer.client, Peer.url, transport=Peer.transport), model)
        if mode == "http"
        else in_process(turns)
    )
    result = wait(forge.run(Peer.workflow, workload.USER, backend=backend))
    assert result.unwrap().value == workload.FINAL_TEXT
