"""The journal: every effect and its outcome as JSON lines, and their reader.

The first line holds the state that the run began with and what it was set up for, so the file is all that a replay
needs. An effect is written before it is performed, its outcome before the run goes on: a journal that ends early is a
run that ended early, and an effect without outcome at its end is in doubt. An effect that is written twice was
performed again after a crash. A request is written as what it adds to the last one: a journal grows with the run,
not with its square.
"""

from collections.abc import Iterator
from os import PathLike

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from forge.errors import ForgeError
from forge.setup import Setup
from stages.effect import Ask, Effect, Execute, Outcome, Request, Send, Unanswered, Undelivered
from stages.state import SCHEMA_VERSION, State

VERSION = 2
"""Of the format; a reader refuses another."""

LONGEST_LINE = 128 * 1024 * 1024
"""Bytes of a line that are read: a reply may have 16 MiB, and JSON may write a character as six."""

MOST_LINES = 200_000
MOST_MESSAGES = 20_000_000
"""Of all requests of a journal together, as the reader lays them out: what bounds its memory."""


class JournalError(ForgeError):
    """A journal cannot be written or read, or the run that is replayed does something that is not in it."""


class Header(Struct, frozen=True, kw_only=True):
    """The first line: the state that the run began with and what it was set up for, all that a replay needs.

    `started` (UTC, ISO 8601) and `forge`, the version that wrote it, are for people; nothing is computed from them.
    `redacted` says what is hidden in it (`forge.interpreters.redact`).
    """

    workflow: str
    state: State
    setup: Setup = Setup()
    redacted: tuple[str, ...] = ()
    forge: str = ""
    started: str = ""
    version: int = VERSION


class SentPart(Struct, frozen=True, kw_only=True, tag="send"):
    """A `Send` by what it adds: the first `keep` messages are the last request's, and so is what is left out."""

    turn: int
    keep: int = 0
    head: Raw | UnsetType = UNSET
    messages: tuple[Raw, ...] = ()
    tail: Raw | UnsetType = UNSET


class Started(Struct, frozen=True, kw_only=True, tag="started"):
    """A line: this is going to be asked of the world."""

    effect: SentPart | Execute | Ask


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    """A line: what became of the effect of the line before."""

    outcome: Outcome


class Entry(Struct, frozen=True, kw_only=True):
    """What was asked of the world, and what became of it."""

    effect: Effect
    outcome: Outcome


class Journal(Struct, frozen=True, kw_only=True):
    """A whole journal, read back. `pending` was begun, and nobody wrote down what became of it.

    `size` is what its complete lines take, in bytes; `last` the last request, which the next one extends.
    """

    header: Header
    entries: tuple[Entry, ...]
    pending: Effect | None = None
    size: int = 0
    last: Request = Request()


def shortened(effect: Effect, before: Request) -> SentPart | Execute | Ask:
    """The effect as its line has it: a request as what it adds to the one before it."""
    if not isinstance(effect, Send):
        return effect
    request, known = effect.request, len(before.messages)
    keep = known if request.messages[:known] == before.messages else 0
    return SentPart(
        turn=effect.turn,
        keep=keep,
        head=UNSET if request.head == before.head else request.head,
        messages=request.messages[keep:],
        tail=UNSET if request.tail == before.tail else request.tail,
    )


def whole(sent: SentPart, before: Request) -> Request:
    """The request that a part stands for. ValueError where it keeps more messages than there were."""
    if not 0 <= sent.keep <= len(before.messages):
        raise ValueError(f"keeps {sent.keep} messages of a request that has {len(before.messages)}")
    return Request(
        head=before.head if sent.head is UNSET else sent.head,
        messages=before.messages[: sent.keep] + sent.messages,
        tail=before.tail if sent.tail is UNSET else sent.tail,
    )


def read_journal(path: str | PathLike[str]) -> Journal:
    """The journal in that file; JournalError names a wrong line. A last line that a crash cut off is left out."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise JournalError(f"{path} is no journal: it has no complete line")
    header = _header(path, first[1])
    entries: list[Entry] = []
    pending: Effect | None = None
    last, messages, size = Request(), 0, len(first[1])
    for number, line in lines:
        size += len(line)
        match _decoded(path, number, line), pending:
            case Started(effect=effect), known:
                pending = _send(path, number, effect, last) if isinstance(effect, SentPart) else effect
                if known is not None and pending != known:
                    raise JournalError(f"{path}, line {number}: {_STRANGE}")
                again = bool(entries) and isinstance(entries[-1].outcome, Undelivered | Unanswered)
                if again and entries[-1].effect == pending:
                    entries.pop()  # it was asked again, once the server was back, or a person
                last = pending.request if isinstance(pending, Send) else last
                messages += len(last.messages)
            case Done(outcome=outcome), known if known is not None:
                entries.append(Entry(effect=known, outcome=outcome))
                pending = None
            case _:
                raise JournalError(f"{path}, line {number}: {_STRANGE}")
        if number > MOST_LINES or messages > MOST_MESSAGES:
            raise JournalError(f"{path}, line {number}: the journal is too long to be read")
    return Journal(header=header, entries=tuple(entries), pending=pending, size=size, last=last)


_STRANGE = "it does not follow from the line before"


def _send(path: str | PathLike[str], number: int, sent: SentPart, before: Request) -> Send:
    try:
        return Send(request=whole(sent, before), turn=sent.turn)
    except ValueError as error:
        raise JournalError(f"{path}, line {number}: it {error}") from None


def _lines(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """The complete lines with their numbers, from 1 on."""
    number = 0
    try:
        # Without pathlib, for whoever imports forge imports this, and pathlib takes longer to load than all of it.
        with open(path, "rb") as file:  # noqa: PTH123
            while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
                number += 1
                yield number, line
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from None
    if len(line) >= LONGEST_LINE:
        raise JournalError(f"{path}, line {number + 1}: it has more than {LONGEST_LINE} bytes")


class _Versions(Struct):
    """What of a header every version has."""

    version: int


def _header(path: str | PathLike[str], line: bytes) -> Header:
    try:
        found = msgspec.json.decode(line, type=_Versions).version
        if found != VERSION:
            raise JournalError(f"{path} was written by another version of forge: {found}, and this reads {VERSION}")
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(f"{path} is no journal of this version of forge: line 1: {error}") from None
    if header.state.version != SCHEMA_VERSION:
        raise JournalError(f"{path}: its state is of version {header.state.version}, and this reads {SCHEMA_VERSION}")
    return header


def _decoded(path: str | PathLike[str], number: int, line: bytes) -> Started | Done:
    try:
        return msgspec.json.decode(line, type=Started | Done)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(f"{path}, line {number}: {error}") from None
