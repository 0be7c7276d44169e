"""The runs of the prefix report: a scripted one whose prompts a real server evaluates, and one that a model decides."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from benchmarks.prefix_pages import INSPECT, REQUEST, archive, inspection, script
from forge import run_sync
from forge.backends import Server
from forge.backends.servers.download import ensure_model
from forge.backends.servers.launch import Launch
from forge.backends.servers.llama_cpp import LlamaCpp
from forge.backends.servers.models import KNOWN
from forge.connection import Connection, Setup
from forge.interpreters.scripted import Scripted
from stages.compaction import Compactor, NoCompact
from stages.effect import Replied, Reply, Send, Usage
from stages.events import HistoryCompacted, ModelReplied, PrefixLost, RunFinished, Stamped
from stages.state import Completed
from stages.wire.sampling import Sampling

CONTEXT = 4096
REPLAYED, DECIDING = "smollm2-135m", "qwen2.5-coder-0.5b"
WAIT = 600.0
"""Seconds in which a slow machine must evaluate one prompt."""


class Timings(Struct, frozen=True):
    """What llama.cpp says of a prompt: tokens that it evaluated, and tokens that it still had."""

    prompt_n: int
    cache_n: int


class _Usage(Struct, frozen=True):
    prompt_tokens: int


class _Answer(Struct, frozen=True):
    usage: _Usage
    timings: Timings


class Replay:
    """A backend whose prompts a real server evaluates, and whose replies are a script's: the same for all."""

    def __init__(self, url: str, replies: Sequence[Reply]) -> None:
        self._url, self._replies = url, replies
        self.seen: list[Timings] = []

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with httpx.AsyncClient(timeout=WAIT) as client:

            async def send(effect: Send) -> Replied:
                body = msgspec.json.decode(effect.request.body, type=dict[str, Raw])
                body |= {"max_tokens": Raw(b"1"), "cache_prompt": Raw(b"true")}
                response = await client.post(f"{self._url}/v1/chat/completions", content=msgspec.json.encode(body))
                answer = msgspec.json.decode(response.raise_for_status().content, type=_Answer)
                self.seen.append(answer.timings)
                return Replied(
                    reply=replace(self._replies[effect.turn - 1], usage=Usage(prompt=answer.usage.prompt_tokens))
                )

            yield Connection(Setup(mode="constrained", context_tokens=CONTEXT, sampling=Sampling(max_tokens=512)), send)


class _Prompt(Struct, frozen=True):
    prompt: str


class _Tokens(Struct, frozen=True):
    tokens: list[int]


def everything(url: str) -> int:
    """Tokens of the last prompt of the run as it is without compaction: each has to be evaluated once."""
    model = Scripted(script(), mode="constrained", context_tokens=10_000_000)
    run_sync(archive(NoCompact()), REQUEST, backend=model).unwrap()
    messages = msgspec.json.decode(model.requests[-1], type=dict[str, Raw])["messages"]
    body = b'{"messages":' + bytes(messages) + b"}"
    prompt = msgspec.json.decode(httpx.post(f"{url}/apply-template", content=body).content, type=_Prompt)
    text = msgspec.json.encode({"content": prompt.prompt, "add_special": True, "parse_special": True})
    return len(msgspec.json.decode(httpx.post(f"{url}/tokenize", content=text).content, type=_Tokens).tokens)


class Row(Struct, frozen=True, kw_only=True):
    """What one strategy cost. `off`: tokens that `stages.view.prefix_reuse` was off, on average, where it saw loss."""

    name: str
    compactions: int
    prompts: int
    evaluated: int
    new: int
    off: float

    @property
    def again(self) -> int:
        return self.evaluated - self.new


def replayed(name: str, compactor: Compactor, compact_to: float) -> Row:
    """The scripted run under that strategy, on a server that has seen nothing before."""
    server = LlamaCpp(Launch(model=REPLAYED, program="local", context_tokens=CONTEXT), ensure_model(KNOWN[REPLAYED]))
    heard: list[Stamped] = []
    try:
        new = everything(server.url)
        backend = Replay(server.url, script())
        run_sync(
            archive(compactor, compact_to),
            REQUEST,
            backend=backend,
            on_event=heard.append,
        ).unwrap()
    finally:
        server.stop()
    seen, events = backend.seen, [one.event for one in heard]
    offs = [abs(e.kept_tokens - seen[e.turn - 1].cache_n) for e in events if isinstance(e, PrefixLost)]
    return Row(
        name=name,
        compactions=sum(isinstance(e, HistoryCompacted) for e in events),
        prompts=sum(t.prompt_n + t.cache_n for t in seen),
        evaluated=sum(t.prompt_n for t in seen),
        new=new,
        off=sum(offs) / max(1, len(offs)),
    )


def decided(name: str, compactor: Compactor, compact_to: float) -> str:
    """A run in which the model decides, as a row of a table."""
    server = LlamaCpp(
        Launch(model=DECIDING, program="local", context_tokens=CONTEXT // 2), ensure_model(KNOWN[DECIDING])
    )
    heard: list[Stamped] = []
    backend = Server(
        server.url, mode="constrained", sampling=Sampling(temperature=0.0, seed=1, max_tokens=96), timeout=WAIT
    )
    try:
        run_sync(
            inspection(compactor, compact_to),
            INSPECT,
            backend=backend,
            on_event=heard.append,
        )
    finally:
        server.stop()
    events = [one.event for one in heard]
    usage = [e.reply.usage or Usage() for e in events if isinstance(e, ModelReplied)]
    evaluated, prompts = sum(u.prompt - u.cached for u in usage), sum(u.prompt for u in usage)
    compactions = sum(isinstance(e, HistoryCompacted) for e in events)
    return f"| {name} | {ended(events[-1])} | {len(usage)} | {compactions} | {prompts:,} | {evaluated:,} |"


def ended(event: object) -> str:
    match event:
        case RunFinished(outcome=Completed(tool=tool, value=value)):
            return f"`{tool}`: {bytes(value).decode()}"
        case other:
            return type(other).__name__
