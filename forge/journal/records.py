"""Records of a journal: its header, effects and outcomes, and how each is a line."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import BinaryIO

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from forge.connection import Setup
from forge.errors import JournalError
from stages.decoding import decode
from stages.effect import Ask, Effect, Execute, Outcome, Request, Send, Unanswered, Undelivered
from stages.saved import current
from stages.state import State

# Lines of a journal: JSON objects; the last field is a checksum of the line and all lines before it.

_VERSION = 4
"""Version of the format; a reader refuses any other."""

LARGEST_JOURNAL = 2 * 1024**3
"""Maximum bytes of a journal: the writer ends the run before exceeding it, the reader refuses a larger file."""

_OPENING = b'{"journal":'
"""The beginning of every journal."""

_DIGITS = 16
_BEFORE, _AFTER = b',"check":"', b'"}\n'
_SUFFIX = len(_BEFORE) + _DIGITS + len(_AFTER)


def with_checksum(line: bytes, before: str) -> tuple[bytes, str]:
    """The JSON object as a line with its checksum, and that checksum; `before` is the previous line's."""
    check = _check(memoryview(line)[:-1], before)
    return b"".join((memoryview(line)[:-1], _BEFORE, check.encode(), _AFTER)), check


def _check(content: memoryview, before: str) -> str:
    digest = hashlib.sha256(before.encode())
    digest.update(content)
    return digest.hexdigest()[:_DIGITS]


def _whole_lines(path: str | PathLike[str]) -> Iterator[tuple[bytes, str]]:
    """The complete lines of the journal at `path` with their checksums; an incomplete last one is left out.

    JournalError for a file that cannot be read, is not a journal, or whose lines are not those that were written.
    """
    try:
        # A device or a pipe has no end, and opening a pipe may block forever.
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - pathlib is slow to load
            raise JournalError(f"{path} is not a file")
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            if os.fstat(file.fileno()).st_size > LARGEST_JOURNAL:
                raise JournalError(f"{path} is not a journal: it has more than {LARGEST_JOURNAL} bytes")
            yield from _checked(path, file)
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from None
    except UnicodeEncodeError:
        raise JournalError(f"{str(path)!r} cannot be the name of a file here") from None


def _checked(path: str | PathLike[str], file: BinaryIO) -> Iterator[tuple[bytes, str]]:
    number, before = 0, ""
    while (line := file.readline(LARGEST_JOURNAL)).endswith(b"\n"):
        number += 1
        if number == 1:
            _refuse_other_version(path, line)
        check = _check(memoryview(line)[:-_SUFFIX], before)
        if line[-_SUFFIX:] != _BEFORE + check.encode() + _AFTER:
            raise JournalError(f"{path}, line {number}: {_DAMAGED}")
        yield line, check
        before = check
    # What is left is an incomplete line after complete ones, as a crash leaves it; or no journal.
    check = _check(memoryview(line)[:-_SUFFIX], before)
    if line[-_SUFFIX:-1] == _BEFORE + check.encode() + _AFTER[:-1]:
        raise JournalError(f"{path}, line {number + 1}: {_DAMAGED}")
    if number:
        return
    if not line:
        raise JournalError(f"{path} is empty: {_NOTHING}")
    if line.startswith(_OPENING) or _OPENING.startswith(line):
        raise JournalError(f"{path} ends within its first line: {_NOTHING}")
    raise JournalError(f"{path} is not a journal: it has no complete line")


class _Versions(Struct):
    """The version of the format, in the first line."""

    journal: int = 0


_versions = msgspec.json.Decoder(_Versions)


def _refuse_other_version(path: str | PathLike[str], line: bytes) -> None:
    try:
        found = decode(_versions, line).journal
    except msgspec.DecodeError as error:
        raise JournalError(f"{path} is not a journal: line 1: {error}") from None
    if not found:
        raise JournalError(f"{path} is not a journal: line 1 names no version")
    if found != _VERSION:
        raise JournalError(f"{path} was written by another version of forge: {found}, and this one reads {_VERSION}")


_DAMAGED = (
    "its checksum is wrong: this line was damaged or changed, or an earlier one was removed, added or moved; "
    "the lines before it are intact"
)
_NOTHING = "the program ended before the run started, and nothing was done; delete the file and start the run again"


# The journal: every effect and its outcome as JSON lines, and their reader.
#
# The first line holds the initial state and the setup of the run, so the file is all that a replay needs. An effect is
# written before it is performed, its outcome before the run continues: a journal that ends early is a run that ended
# early, and an effect without an outcome at its end has an unknown one. A request is written, and kept in memory, as
# what it adds to the previous one, so both grow linearly with the run.


class Header(Struct, frozen=True, kw_only=True):
    """The first line: the initial state and the setup of the run, all that a replay needs.

    `journal` is the version of the format. `started` (UTC, ISO 8601) and `forge`, the version that wrote it, are for
    people; nothing is computed from them. `redacted` says what is hidden in it (`forge.journal.redaction`).
    `definition` describes the workflow (`forge.journal.definition`), to report changes since.
    """

    journal: int = _VERSION
    workflow: str
    state: State
    setup: Setup = Setup()
    redacted: tuple[str, ...] = ()
    definition: Mapping[str, object] = {}
    forge: str = ""
    started: str = ""


class SentPart(Struct, frozen=True, kw_only=True, tag="send"):
    """A `Send` as a difference: the first `keep` messages, and any part left out, are the previous request's."""

    turn: int
    target: str = "main"
    keep: int = 0
    head: Raw | UnsetType = UNSET
    messages: tuple[Raw, ...] = ()
    tail: Raw | UnsetType = UNSET


Recorded = SentPart | Execute | Ask
"""An effect as recorded in a journal."""


class EffectLine(Struct, frozen=True, kw_only=True, tag="started"):
    """A line: this effect is about to be performed."""

    effect: Recorded


class AgainLine(Struct, frozen=True, kw_only=True, tag="again"):
    """A line: the last effect is about to be retried, after a crash or once a server or a person is available."""


class OutcomeLine(Struct, frozen=True, kw_only=True, tag="done"):
    """A line: the outcome of the effect in the line before."""

    outcome: Outcome


class JournalEntry(Struct, frozen=True, kw_only=True):
    """An effect and its outcome."""

    effect: Recorded
    outcome: Outcome


class Journal(Struct, frozen=True, kw_only=True):
    """A whole journal, read back. `pending` is a last effect without a recorded outcome.

    `resumed` are the numbers, from 0, of the effects that were retried by a resumed run. `size` is the bytes of its
    complete lines, `check` the last one's checksum, `last` the last request, which the next one extends.
    """

    header: Header
    entries: tuple[JournalEntry, ...]
    pending: Recorded | None = None
    resumed: frozenset[int] = frozenset()
    size: int = 0
    check: str = ""
    last: Request = Request()

    def asked(self) -> tuple[Recorded, ...]:
        """All effects, the pending one last."""
        known = tuple(entry.effect for entry in self.entries)
        return known if self.pending is None else (*known, self.pending)

    def effect(self, number: int) -> Effect:
        """The effect with that number, counted from 0, with its complete request."""
        asked = self.asked()[: number + 1]
        wanted = asked[-1]
        if not isinstance(wanted, SentPart):
            return wanted
        requests = _Requests()
        for one in asked:
            if isinstance(one, SentPart):
                requests.add(one)
        request = requests.last()
        return Send(request=request, turn=wanted.turn, target=wanted.target)


def bare_lines(journal: Journal) -> Iterator[bytes]:
    """The lines that the journal is written as, without their checksums."""
    yield msgspec.json.encode(journal.header)
    for entry in journal.entries:
        yield msgspec.json.encode(EffectLine(effect=entry.effect))
        yield msgspec.json.encode(OutcomeLine(outcome=entry.outcome))
    if journal.pending is not None:
        yield msgspec.json.encode(EffectLine(effect=journal.pending))


def checked_lines(journal: Journal) -> Iterator[bytes]:
    """The lines of its file."""
    check = ""
    for bare in bare_lines(journal):
        line, check = with_checksum(bare, check)
        yield line


def shortened(effect: Effect, before: Request) -> Recorded:
    """The effect as it is recorded: a request as what it adds to the previous one."""
    if not isinstance(effect, Send):
        return effect
    request = effect.request
    keep = len(before.messages)
    if request.messages[:keep] != before.messages:  # unusual: one request extends the last
        pairs = enumerate(zip(before.messages, request.messages, strict=False))
        differing = (n for n, (old, new) in pairs if old is not new and old != new)
        keep = next(differing, len(request.messages))
    return SentPart(
        turn=effect.turn,
        target=effect.target,
        keep=keep,
        head=UNSET if request.head == before.head else request.head,
        messages=request.messages[keep:],
        tail=UNSET if request.tail == before.tail else request.tail,
    )


class _Requests:
    """The requests of a journal in order; each takes time linear in what it adds."""

    def __init__(self) -> None:
        self._head = self._tail = Raw(b"{}")
        self._messages: list[Raw] = []

    def add(self, part: SentPart) -> None:
        """Add the next one. ValueError if it keeps more messages than there were."""
        if not 0 <= part.keep <= len(self._messages):
            raise ValueError(f"keeps {part.keep} messages of a request that has {len(self._messages)}")
        del self._messages[part.keep :]
        self._messages += part.messages
        self._head = self._head if part.head is UNSET else part.head
        self._tail = self._tail if part.tail is UNSET else part.tail

    def last(self) -> Request:
        """The last request."""
        return Request(head=self._head, messages=tuple(self._messages), tail=self._tail)


def read_journal(path: str | PathLike[str]) -> Journal:
    """The journal in that file; JournalError names a wrong line. An incomplete last line is ignored."""
    lines = _whole_lines(path)
    first, check = next(lines)
    try:
        header = decode(_HEADER, first)
    except msgspec.DecodeError as error:
        raise JournalError(f"{path} is not a journal of this version of forge: line 1: {error}") from None
    try:
        header = replace(header, state=current(header.state))
    except ValueError as error:
        raise JournalError(f"{path}: {error}") from None
    size = len(first)
    entries: list[JournalEntry] = []
    pending: Recorded | None = None
    requests = _Requests()
    resumed: set[int] = set()
    for number, (line, after) in enumerate(lines, start=2):
        size, check = size + len(line), after
        try:
            read = decode(_LINE, line)
        except msgspec.DecodeError as error:
            raise JournalError(f"{path}, line {number}: {error}") from None
        match read, pending:
            case EffectLine(effect=effect), None:
                pending = effect
                if isinstance(effect, SentPart):
                    try:
                        requests.add(effect)
                    except ValueError as error:
                        raise JournalError(f"{path}, line {number}: it {error}") from None
            case OutcomeLine(outcome=outcome), known if known is not None:
                entries.append(JournalEntry(effect=known, outcome=outcome))
                pending = None
            case AgainLine(), None if entries and isinstance(entries[-1].outcome, Undelivered | Unanswered):
                pending = entries.pop().effect
                resumed.add(len(entries))
            case AgainLine(), known if known is not None:
                resumed.add(len(entries))
            case _:
                raise JournalError(f"{path}, line {number}: it does not follow from the line before")
    return Journal(
        header=header,
        entries=tuple(entries),
        pending=pending,
        resumed=frozenset(resumed),
        size=size,
        check=check,
        last=requests.last(),
    )


_HEADER = msgspec.json.Decoder(Header)
_LINE: msgspec.json.Decoder[EffectLine | AgainLine | OutcomeLine] = msgspec.json.Decoder(
    EffectLine | AgainLine | OutcomeLine
)
