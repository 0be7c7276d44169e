"""A journal at a glance: which run it is and how far it got."""

from pathlib import Path
from typing import Literal, assert_never

import msgspec
from msgspec import UNSET, Struct

from forge.journal.records import Journal, Recorded, SentPart, read_journal
from stages.effect import Ask, Execute, Rejected, Replied, Results, Succeeded, Unanswered, Undelivered


class _Tool(Struct):
    effect: str = "write"


class _Definition(Struct):
    tools: dict[str, _Tool] = {}


class Glance(Struct, frozen=True, kw_only=True):
    """A journal in short. `outcome` is a sentence; `state` says whether the run reached its goal, can resume, or ended.

    `started` is UTC, ISO 8601. `asked_mode` is the mode to ask for when it is resumed: `auto` only if the run may still
    fall back to another.
    """

    path: str
    workflow: str
    started: str
    model: str
    mode: str
    asked_mode: str
    seed: int | None
    temperature: float | None
    max_tokens: int | None
    turns: int
    state: Literal["done", "open", "ended"]
    outcome: str
    redacted: bool


def glance(path: Path) -> Glance:
    """A summary of the journal's run. JournalError for a file that cannot be read as a journal."""
    journal = read_journal(path)
    header = journal.header
    state, outcome = _ending(journal)
    sampling = header.setup.sampling
    return Glance(
        path=str(path),
        workflow=header.workflow,
        started=header.started,
        model=header.setup.model,
        mode=header.setup.mode,
        asked_mode="auto" if header.setup.falls_back else header.setup.mode,
        seed=None if sampling.seed is UNSET else sampling.seed,
        temperature=None if sampling.temperature is UNSET else sampling.temperature,
        max_tokens=None if sampling.max_tokens is UNSET else sampling.max_tokens,
        turns=next((one.turn for one in reversed(journal.asked()) if isinstance(one, SentPart)), 0),
        state=state,
        outcome=outcome,
        redacted=bool(header.redacted),
    )


def _ending(journal: Journal) -> tuple[Literal["done", "open", "ended"], str]:
    if journal.pending is not None:
        return "open", _pending(journal.pending)
    if not journal.entries:
        return "open", "interrupted before anything was done"
    asked = journal.entries[-1].effect
    match journal.entries[-1].outcome:
        case Undelivered(fault=fault):
            return "open", f"the model's server gave no answer: {fault.detail}"
        case Unanswered(reason=reason):
            return "open", f"a person's answer is missing: {reason}"
        case Rejected() if isinstance(asked, Ask) and asked.in_doubt:
            return "open", f"the outcome of {asked.in_doubt.name} is unknown, and a person left it open"
        case Results(results=results) if isinstance(asked, Execute):
            names = {call.id: call.name for call in asked.calls}
            good = (names.get(one.call_id, "") for one in results if isinstance(one, Succeeded))
            tools = msgspec.convert(journal.header.definition, _Definition).tools
            ends = [name for name in good if tools.get(name, _Tool()).effect == "terminal"]
            return ("done", f"{ends[0]} returned") if ends else ("ended", "ended after the results of its tools")
        case Replied(reply=reply):
            # In the other modes calls are written as text, too.
            said = journal.header.setup.mode == "native" and not reply.calls and bool(reply.text.strip())
            return "ended", "ended after a reply in text" if said else "ended after a reply of the model"
        case _:
            return "ended", "ended after a person's answer"


def _pending(effect: Recorded) -> str:
    match effect:
        case SentPart(turn=turn):
            return f"interrupted in turn {turn}, before the model answered"
        case Execute(calls=calls, retriable=True):
            return f"interrupted while {', '.join(call.name for call in calls)} ran"
        case Execute(calls=calls):
            return f"interrupted; the outcome of {', '.join(call.name for call in calls)} is unknown"
        case Ask(call=call):
            return f"interrupted before a person decided whether {call.name} may run"
        case _:
            assert_never(effect)
