"""The recorded runs in tests/data/tokens/: what each prompt of a run takes, and what forge says beforehand."""

from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.deliver import deliver
from stages.effect import Budget, Replied, Reply, Usage
from stages.events import TurnStarted, observe
from stages.fold import fold
from stages.message import History
from stages.pipeline import pipeline
from stages.rules import Rules
from stages.send import send
from stages.serialize import serialize
from stages.state import Ledger, Ready, State
from stages.tool import ToolSpec
from stages.wire.target import Mode, Target

FOLDER = Path(__file__).parent / "data" / "tokens"


class Recorded(Struct, frozen=True, kw_only=True):
    """A run: its tools, its history, and how many messages of that each of its prompts shows."""

    name: str
    tools: tuple[ToolSpec, ...]
    history: History
    prompts: tuple[int, ...]


class Reports(Struct, frozen=True, kw_only=True):
    """What a server says of each prompt of a run, by its template and tokenizer: what it counts in a reply's `usage`.

    `usage` are the `usage.prompt_tokens` of the first prompts, which the model did read; `rate` is what its tokenizer
    makes of `forge.backends.questions.SAMPLE`, in tokens a character.
    """

    model: str
    run: str
    mode: Mode
    tokens: tuple[int, ...]
    usage: tuple[int, ...]
    rate: float


def runs() -> dict[str, Recorded]:
    """The runs, by name."""
    lines = (FOLDER / "runs.jsonl").read_bytes().splitlines()
    return {run.name: run for run in (msgspec.json.decode(line, type=Recorded) for line in lines)}


def reports() -> list[Reports]:
    """What the servers said."""
    lines = (FOLDER / "reports.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Reports) for line in lines]


def estimates(run: Recorded, mode: Mode, reported: tuple[int, ...], ledger: Ledger) -> list[int]:
    """What the run says that each prompt takes, before it is sent; after each it is told what was reported."""
    rules = Rules(tools=run.tools)
    turn = pipeline(fold(), serialize(rules, Target(mode=mode)), send(rules))
    state = State(history=(), ledger=replace(ledger, budget=Budget(calls=len(run.prompts))))
    said = []
    for count, tokens in zip(run.prompts, reported, strict=True):
        ready = replace(state, history=run.history[:count], phase=Ready())
        sent = turn(ready).unwrap()
        said += [event.prompt_tokens for event in observe(ready, sent) if isinstance(event, TurnStarted)]
        state = deliver(sent, Replied(reply=Reply(usage=Usage(prompt=tokens)))).unwrap()
    return said


def errors(run: Recorded, report: Reports, ledger: Ledger) -> list[float]:
    """By how much each estimate is too high, as a fraction of what was reported; too low: negative."""
    said = estimates(run, report.mode, report.tokens, ledger)
    return [estimate / reported - 1 for estimate, reported in zip(said, report.tokens, strict=True)]


class Kind(Struct, frozen=True, kw_only=True):
    """Texts of a kind: how often each byte of UTF-8 is in them, and how many tokens each tokenizer makes of them."""

    kind: str
    characters: int
    bytes: tuple[int, ...]
    tokens: dict[str, int]


def kinds() -> list[Kind]:
    """The texts that the weights of `stages.tokens` were fitted to."""
    lines = (FOLDER / "kinds.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Kind) for line in lines]
