"""A journal at a glance: which run it is and how far it got, from its first and last lines only."""

import os
from pathlib import Path
from typing import Literal, assert_never

import msgspec
from msgspec import Struct, field

from forge.errors import JournalError
from forge.journal.records import JOURNAL_VERSION, AgainLine, EffectLine, OutcomeLine, Recorded, SentPart
from stages.effect import Ask, Execute, Replied, Results, Succeeded, Unanswered, Undelivered

_HEAD = 4 * 1024 * 1024
"""Maximum bytes read of the first line, which may hold an earlier conversation."""

TAIL = 1024 * 1024
"""Bytes read from the end of a journal."""

_Line = EffectLine | AgainLine | OutcomeLine


class _Sampling(Struct):
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None


class _Setup(Struct):
    model: str = ""
    mode: str = ""
    sampling: _Sampling = field(default_factory=_Sampling)


class _Tool(Struct):
    effect: str = "write"


class _Definition(Struct):
    tools: dict[str, _Tool] = {}


class _Header(Struct):
    """The part of the first line that is shown."""

    journal: int = 0
    workflow: str = ""
    started: str = ""
    redacted: tuple[str, ...] = ()
    setup: _Setup = field(default_factory=_Setup)
    definition: _Definition = field(default_factory=_Definition)


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
    """A summary of the journal's run, in bounded time; checksums are not verified.

    JournalError for a file that is not a journal or was written by another version of forge.
    """
    try:
        with path.open("rb") as file:
            first = file.readline(_HEAD)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(len(first), size - TAIL))
            tail = file.read(TAIL)
            cut = size - TAIL > len(first)
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from None
    header = _header(path, first)
    lines = _lines(tail, cut=cut)
    state, outcome = _ending(lines, header)
    sampling = header.setup.sampling
    return Glance(
        path=str(path),
        workflow=header.workflow,
        started=header.started,
        model=header.setup.model,
        mode=header.setup.mode,
        seed=sampling.seed,
        temperature=sampling.temperature,
        max_tokens=sampling.max_tokens,
        turns=_turns(lines, cut=cut),
        state=state,
        outcome=outcome,
        redacted=bool(header.redacted),
    )


def _header(path: Path, line: bytes) -> _Header:
    try:
        header = msgspec.json.decode(line, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise JournalError(f"{path} is not a journal") from None
    if header.journal != JOURNAL_VERSION:
        raise JournalError(f"{path} is of another version of forge, or not a journal")
    return header


def _lines(tail: bytes, *, cut: bool) -> list[_Line]:
    """The readable complete lines at the end."""
    whole = tail.split(b"\n")[1 if cut else 0 : -1]
    found: list[_Line] = []
    for line in whole:
        try:
            found.append(msgspec.json.decode(line, type=_Line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found.clear()  # lines before an unreadable one say nothing about the end
    return found


def _turns(lines: list[_Line], *, cut: bool) -> int | None:
    for line in reversed(lines):
        if isinstance(line, EffectLine) and isinstance(line.effect, SentPart):
            return line.effect.turn
    return None if cut else 0


def _ending(lines: list[_Line], header: _Header) -> tuple[Literal["done", "open", "ended"], str]:
    asked = next((line.effect for line in reversed(lines) if isinstance(line, EffectLine)), None)
    if asked is None:
        return "open", "interrupted before anything was done"
    match lines[-1]:
        case EffectLine() | AgainLine():
            return "open", _pending(asked)
        case OutcomeLine(outcome=Undelivered(fault=fault)):
            return "open", f"the model's server gave no answer: {fault.detail}"
        case OutcomeLine(outcome=Unanswered(reason=reason)):
            return "open", f"a person's answer is missing: {reason}"
        case OutcomeLine(outcome=Results(results=results)) if isinstance(asked, Execute):
            names = {call.id: call.name for call in asked.calls}
            good = (names.get(one.call_id, "") for one in results if isinstance(one, Succeeded))
            ends = [name for name in good if header.definition.tools.get(name, _Tool()).effect == "terminal"]
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
