"""Write benchmarks/PREFIX.md: how many tokens a real llama.cpp evaluates again, by how the history is compacted.

python -m benchmarks.prefix_report
"""

import platform
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import httpx
import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from benchmarks.prefix_pages import INSPECT, REQUEST, TURNS, archive, inspection, script
from forge import run_sync
from forge.backends import Server
from forge.backends.download import ensure_model
from forge.backends.local import LlamaCpp, Settings
from forge.backends.models import KNOWN
from forge.connection import Connection
from forge.interpreters.scripted import Scripted
from stages.compaction import CompactionResult, Compactor, ContextBudget, NoCompact, SlidingWindowCompact, TieredCompact
from stages.effect import Replied, Reply, Send, Usage
from stages.events import Compacted, Event, Finished, ModelReplied, PrefixLost
from stages.message import History
from stages.state import Completed
from stages.wire.openai import Sampling

CONTEXT = 4096
REPLAYED, DECIDING = "smollm2-135m", "qwen2.5-coder-0.5b"
WAIT = 600.0
"""Seconds in which a slow machine must evaluate one prompt."""


def to_threshold(history: History, budget: ContextBudget) -> CompactionResult:
    """Tiered, down to where it began and no further: compaction without a low mark."""
    return TieredCompact()(history, replace(budget, low=budget.threshold))


STRATEGIES: dict[str, Compactor] = {
    "(a) tiered to the threshold": to_threshold,
    "(b) sliding window": SlidingWindowCompact(),
    "(c) tiered to the low mark": TieredCompact(),
}


class Timings(Struct, frozen=True):
    """What llama.cpp says of a prompt: tokens that it evaluated, tokens that it still had, and how long it took."""

    prompt_n: int
    cache_n: int
    prompt_ms: float


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

            yield Connection(
                send=send, mode="constrained", model="", context_tokens=CONTEXT, sampling=Sampling(max_tokens=512)
            )


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
    """What one strategy cost. `off` is how many tokens `stages.prefix` was off, on average, where it saw a loss."""

    name: str
    compactions: int
    prompts: int
    evaluated: int
    new: int
    seconds: float
    off: float

    @property
    def again(self) -> int:
        return self.evaluated - self.new


def replayed(name: str, compactor: Compactor) -> Row:
    """The scripted run under that strategy, on a server that has seen nothing before."""
    server = LlamaCpp(Settings(path=ensure_model(KNOWN[REPLAYED]), context_tokens=CONTEXT))
    events: list[Event] = []
    try:
        new = everything(server.url)
        backend = Replay(server.url, script())
        run_sync(archive(compactor), REQUEST, backend=backend, observer=events.append).unwrap()
    finally:
        server.stop()
    seen = backend.seen
    offs = [abs(e.kept_tokens - seen[e.turn - 1].cache_n) for e in events if isinstance(e, PrefixLost)]
    return Row(
        name=name,
        compactions=sum(isinstance(e, Compacted) for e in events),
        prompts=sum(t.prompt_n + t.cache_n for t in seen),
        evaluated=sum(t.prompt_n for t in seen),
        new=new,
        seconds=sum(t.prompt_ms for t in seen) / 1000,
        off=sum(offs) / max(1, len(offs)),
    )


def decided(name: str, compactor: Compactor) -> str:
    """A run in which the model decides, as a row of a table."""
    server = LlamaCpp(Settings(path=ensure_model(KNOWN[DECIDING]), context_tokens=CONTEXT // 2))
    events: list[Event] = []
    backend = Server(
        server.url, mode="constrained", sampling=Sampling(temperature=0.0, seed=1, max_tokens=96), timeout=WAIT
    )
    try:
        run_sync(inspection(compactor), INSPECT, backend=backend, observer=events.append)
    finally:
        server.stop()
    usage = [e.reply.usage or Usage() for e in events if isinstance(e, ModelReplied)]
    evaluated, prompts = sum(u.prompt - u.cached for u in usage), sum(u.prompt for u in usage)
    compactions = sum(isinstance(e, Compacted) for e in events)
    return f"| {name} | {ended(events[-1])} | {len(usage)} | {compactions} | {prompts:,} | {evaluated:,} |"


def ended(event: Event) -> str:
    match event:
        case Finished(outcome=Completed(tool=tool, value=value)):
            return f"`{tool}`: {bytes(value).decode()}"
        case other:
            return type(other).__name__


HEAD = """\
# Prefix, measured

Written by `python -m benchmarks.prefix_report` on {machine}, with llama.cpp as in xllamacpp {xllamacpp}.

A server keeps what it has evaluated of a prompt as long as the next prompt begins the same. These are a server's \
own timings (`prompt_n`, `cache_n`), not estimates: tokens, so the machine does not matter.

## The same {turns} turns

The workflow reads {pages} pages of 300 to 1,500 characters, one a turn, and writes a report; the replies come from a \
script, so that all strategies are asked the same. {model}, context {context:,} tokens, threshold 0.75, low mark \
{low}. \
*Again*: evaluated beyond the {new:,} tokens of the whole run, each of which is new once. *Off*: how far \
`stages.prefix` was from the server, where it told of a loss: tokens kept, on average.

| | compactions | tokens of all prompts | evaluated | of these again | ÷ (a) | seconds | off |
|---|---:|---:|---:|---:|---:|---:|---:|
"""

DECIDED = """
## The model decides

{model} inspects ten places, each of which names the next, and reports the word that the last one gives \
(constrained, context {context:,} tokens, temperature 0).

| | outcome | turns | compactions | tokens of all prompts | evaluated |
|---|---|---:|---:|---:|---:|
"""


def page(rows: Sequence[Row], runs: Sequence[str]) -> str:
    base = rows[0].again
    lines = [
        f"| {r.name} | {r.compactions} | {r.prompts:,} | {r.evaluated:,} | {r.again:,} | {r.again / base:.2f} "
        f"| {r.seconds:.0f} | {r.off:.0f} |"
        for r in rows
    ]
    head = HEAD.format(
        machine=f"{platform.system()} {platform.machine()}",
        xllamacpp=version("xllamacpp"),
        turns=TURNS,
        pages=TURNS - 1,
        context=CONTEXT,
        model=KNOWN[REPLAYED].title,
        low=ContextBudget(tokens=1).low,
        new=rows[0].new,
    )
    decided_head = DECIDED.format(model=KNOWN[DECIDING].title, context=CONTEXT // 2)
    return head + "\n".join(lines) + "\n" + decided_head + "\n".join(runs) + "\n"


def main() -> None:
    """Run everything and write the page; some minutes, on a slow machine half an hour."""
    rows = [replayed(name, compactor) for name, compactor in STRATEGIES.items()]
    runs = [decided(name, compactor) for name, compactor in STRATEGIES.items()]
    Path(__file__).with_name("PREFIX.md").write_text(page(rows, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
