"""A server of runs for the tests: in this process, on a loop and a port of its own, with a model that plays by rules.

What the model does follows from what the run was asked and from the results that it has: it looks the order up, pays,
and finishes, unless the message says otherwise (`hang`, `ask`, `away`).
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from forge import Limits, Workflow, call, tool
from forge.callbacks import OnChunk, Watcher
from forge.connection import Connection, Setup
from forge.serve import RunServer, ServeOptions
from stages.effect import Fault, Replied, Reply, Send, Undelivered, Usage
from stages.wire.deltas import reply_pieces
from tests.durable.till import ask_back, finish, get_order, till

quick = Workflow(
    "quick",
    tools=[get_order, finish, ask_back],
    terminal_tool=["finish", "ask_back"],
    system_prompt="You are {who}.",
    limits=Limits(max_iterations=5),
)


@tool(approval=True)
def refund(amount: float) -> str:
    """Refund an amount."""
    return f"refunded {amount:g}"


desk = Workflow("desk", tools=[get_order, refund], required_steps=["get_order"], terminal_tool="refund")

REFUSED = "http://backend.internal answered 400: the key sk-backend-123456 is invalid"
"""What the model's server says in an error, which is not for callers."""


class Model:
    """The model. What is asked with `hang` in it, it answers in part, and the rest when it is released.

    With `away`, it gives no answer until it is released.
    """

    def __init__(self) -> None:
        self.released, self.halfway = asyncio.Event(), threading.Event()

    def reply(self, effect: Send) -> Reply:
        body = json.loads(effect.request.body)
        asked = [one["content"] for one in body["messages"] if one["role"] == "user"]
        results = [one["content"] for one in body["messages"] if one["role"] == "tool"]
        tools = {one["function"]["name"] for one in body["tools"]}
        if "ask" in asked[0] and len(asked) == 1:
            made = call("ask_back", question="Which order?")
        elif not results:
            made = call("get_order", order_id="A")
        elif "pay" in tools and len(results) == 1:
            made = call("pay", amount=5.0)
        elif "refund" in tools:
            made = call("refund", amount=5.0)
        else:
            made = call("finish", note=asked[-1].split()[-1])
        return replace(made, text="I see to it.", usage=Usage(prompt=100, completion=10))

    async def send(self, effect: Send) -> Replied | Undelivered:
        if b"away" in effect.request.body and not self.released.is_set():
            return Undelivered(fault=Fault(kind="status", status=400, detail=REFUSED, body=REFUSED))
        if b"hang" in effect.request.body:
            await self.released.wait()
        return Replied(reply=self.reply(effect))

    async def stream(self, effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
        watcher, reply = Watcher(on_chunk), self.reply(effect)
        text, *rest = reply_pieces(reply)
        await watcher.see(text)
        self.halfway.set()
        replied = await self.send(effect)
        for piece in rest:
            await watcher.see(piece)
        return replied

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        yield Connection(Setup(model="player", context_tokens=8192), self.send, self.stream)


class Running:
    """A server that runs."""

    def __init__(self, server: RunServer, loop: asyncio.AbstractEventLoop, model: Model) -> None:
        self.server, self.loop, self.model, self.url = server, loop, model, server.url

    def release(self) -> None:
        """Let the model go on with what it hangs in, now and later."""
        self.loop.call_soon_threadsafe(self.model.released.set)

    def client(self, key: str = "") -> httpx.Client:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(base_url=self.url, timeout=60, headers=headers, trust_env=False)


@contextmanager
def serving(folder: Path, options: ServeOptions = ServeOptions(port=0), **others: Any) -> Iterator[Running]:  # noqa: B008
    """The server in a thread, from when it answers until it has stopped."""
    began, ended = threading.Event(), threading.Event()
    made: list[Running] = []
    failed: list[BaseException] = []

    async def serve() -> None:
        model = Model()
        async with RunServer(
            [till, quick, desk], database=folder / "runs.db", backend=model, options=options, **others
        ) as one:
            made.append(Running(one, asyncio.get_running_loop(), model))
            began.set()
            await one.stopped()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised in the test
            failed.append(error)
        finally:
            began.set()
            ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    began.wait()
    try:
        if failed:
            raise failed[0]
        yield made[0]
    finally:
        if made and not ended.is_set():
            made[0].loop.call_soon_threadsafe(made[0].server.stop)
        thread.join()


def events_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The events of a stream, each with its `id`, its `turn` and, as `stamped`, all that was sent; or a `state`."""
    found: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            found[name] = value
        elif not line:
            if "data" in found:
                yield event_of(found)
            found = {}


def event_of(found: dict[str, str]) -> dict[str, Any]:
    """The event of those fields."""
    told, known = json.loads(found["data"]), found.get("id", "")
    if found["event"] == "state":
        return {"type": "state", "id": known, "run": told}
    assert told["event"]["type"] == found["event"]
    assert known in {"", ".".join(map(str, told.get("sequence", [0, 0])))}
    return {**told["event"], "id": known, "turn": told.get("turn", 0), "stamped": told}
