"""A journal at a glance: which run it is and how far it got, from its first and last lines only."""

import os
from pathlib import Path
from typing import Literal, assert_never

import msgspec
from msgspec import UNSET, Struct

from forge.errors import JournalError
from forge.journal.records import AgainLine, EffectLine, Header, OutcomeLine, Recorded, SentPart, read_header
from stages.effect import Ask, Execute, Rejected, Replied, Results, Succeeded, Unanswered, Undelivered

_HEAD = 4 * 1024 * 1024
"""Maximum bytes read of the first line, which may hold an earlier conversation."""

TAIL = 1024 * 1024
"""Bytes first read from the end of a journal; more if its last step is larger."""

_Line = EffectLine | AgainLine | OutcomeLine


class _Tool(Struct):
    effect: str = "write"


class _Definition(Struct):
    tools: dict[str, _Tool] = {}


class Glance(Struct, frozen=True, kw_only=True):
    """A journal in short. `outcome` is a sentence; `state` says whether the run reached its goal, can resume, or ended.

    `turns` is None if the last model call is too far from the end. `started` is UTC, ISO 8601.
    """

    path: str
    workflow: str
    started: str
    model: str
    mode: str
    seed: int | None
    temperature: float | None
    max_tokens: int | None
    turns: int | None
    state: Literal["done", "open", "ended"]
    outcome: str
    redacted: bool


def glance(path: Path) -> Glance:
    """A summary of the journal's run, in time linear in its first line and its last step; checksums are not verified.

    JournalError for a file that is not a journal or was written by another version of forge.
    """
    room = TAIL
    try:
        with path.open("rb") as file:
            first = file.readline(_HEAD)
            header = read_header(path, first)
            size = os.fstat(file.fileno()).st_size
            while True:
                cut = size - room > len(first)
                file.seek(size - room if cut else len(first))
                lines = _decoded(file.read(room).split(b"\n")[1 if cut else 0 : -1])
                asked = [line.effect for line in lines if isinstance(line, EffectLine)]
                if asked or not cut:
                    break
                room *= 8
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from None
    state, outcome = _ending(lines, asked, header)
    sampling = header.setup.sampling
    return Glance(
        path=str(path),
        workflow=header.workflow,
        started=header.started,
        model=header.setup.model,
        mode=header.setup.mode,
        seed=None if sampling.seed is UNSET else sampling.seed,
        temperature=None if sampling.temperature is UNSET else sampling.temperature,
        max_tokens=None if sampling.max_tokens is UNSET else sampling.max_tokens,
        turns=next((one.turn for one in reversed(asked) if isinstance(one, SentPart)), None if cut else 0),
        state=state,
        outcome=outcome,
        redacted=bool(header.redacted),
    )


def _decoded(tail: list[bytes]) -> list[_Line]:
    """The last lines; those before an unreadable one are left out, because they say nothing about the end."""
    lines: list[_Line] = []
    for line in tail:
        try:
            lines.append(msgspec.json.decode(line, type=_Line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            lines.clear()
    return lines


def _ending(
    lines: list[_Line], effects: list[Recorded], header: Header
) -> tuple[Literal["done", "open", "ended"], str]:
    if not effects:
        return "open", "interrupted before anything was done"
    asked = effects[-1]
    match lines[-1]:
        case EffectLine() | AgainLine():
            return "open", _pending(asked)
        case OutcomeLine(outcome=Undelivered(fault=fault)):
            return "open", f"the model's server gave no answer: {fault.detail}"
        case OutcomeLine(outcome=Unanswered(reason=reason)):
            return "open", f"a person's answer is missing: {reason}"
        case OutcomeLine(outcome=Rejected()) if isinstance(asked, Ask) and asked.in_doubt:
            return "open", f"the outcome of {asked.in_doubt.name} is unknown, and a person left it open"
        case OutcomeLine(outcome=Results(results=results)) if isinstance(asked, Execute):
            names = {call.id: call.name for call in asked.calls}
            good = (names.get(one.call_id, "") for one in results if isinstance(one, Succeeded))
            tools = msgspec.convert(header.definition, _Definition).tools
            ends = [name for name in good if tools.get(name, _Tool()).effect == "terminal"]
            return ("done", f"{ends[0]} returned") if ends else ("ended", "ended after the results of its tools")
        case OutcomeLine(outcome=Replied(reply=reply)):
            # In the other modes calls are written as text, too.
            said = header.setup.mode == "native" and not reply.calls and bool(reply.text.strip())
            return "ended", "ended after a reply in text" if said else "ended after a reply of the model"
        case OutcomeLine():
            return "ended", "ended after a person's answer"
        case never:
            assert_never(never)


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
