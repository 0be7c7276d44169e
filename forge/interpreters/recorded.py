"""The journal: every effect and its outcome as JSON lines; and a replay that answers from it.

The first line holds the state that the run began with, so the file is all that a replay needs. An effect is written
before it is performed, its outcome before the run goes on: a journal that ends early is a run that ended early, and
an effect without outcome at its end is in doubt. An effect that is written twice was performed again after a crash.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from forge.errors import ForgeError
from stages.effect import Effect, Outcome
from stages.state import SCHEMA_VERSION, State


class JournalError(ForgeError):
    """A journal cannot be read, or the run that is replayed does something that is not in it."""


class Header(Struct, frozen=True, kw_only=True):
    """The first line of a journal."""

    workflow: str
    state: State
    version: int = SCHEMA_VERSION


class Started(Struct, frozen=True, kw_only=True, tag="started"):
    """A line: this is going to be asked of the world."""

    effect: Effect


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    """A line: what became of the effect of the line before."""

    outcome: Outcome


class Entry(Struct, frozen=True, kw_only=True):
    """What was asked of the world, and what became of it."""

    effect: Effect
    outcome: Outcome


class Journal(Struct, frozen=True, kw_only=True):
    """A whole journal, read back. `pending` was begun, and nobody wrote down what became of it.

    `size` is what its complete lines take, in bytes.
    """

    header: Header
    entries: tuple[Entry, ...]
    pending: Effect | None
    size: int


def read_journal(path: str | Path) -> Journal:
    """The journal in that file; JournalError names a wrong line. A last line that a crash cut off is left out."""
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error.strerror}") from None
    whole = lines[:-1]
    if not whole:
        raise JournalError(f"{path} is no journal: it has no complete line")
    try:
        header = msgspec.json.decode(whole[0], type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JournalError(f"{path} is no journal of this version of forge: line 1: {error}") from None
    if header.version != SCHEMA_VERSION:
        raise JournalError(f"{path} was written by another version: {header.version}, not {SCHEMA_VERSION}")
    entries, pending = _entries(path, whole[1:])
    return Journal(header=header, entries=entries, pending=pending, size=sum(len(line) + 1 for line in whole))


def _entries(path: str | Path, lines: list[bytes]) -> tuple[tuple[Entry, ...], Effect | None]:
    """The pairs of effect and outcome, and the effect at the end that has no outcome."""
    decoder = msgspec.json.Decoder(Started | Done)
    entries: list[Entry] = []
    pending: Effect | None = None
    for number, line in enumerate(lines, start=2):
        try:
            match decoder.decode(line), pending:
                case Started(effect=effect), None:
                    pending = effect
                case Started(effect=effect), known if effect == known:
                    pass
                case Done(outcome=outcome), known if known is not None:
                    entries.append(Entry(effect=known, outcome=outcome))
                    pending = None
                case _:
                    raise JournalError(f"{path}, line {number}: it does not follow from the line before")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise JournalError(f"{path}, line {number}: {error}") from None
    return tuple(entries), pending


class Replay:
    """The interpreter that answers from a journal, and only what was asked there."""

    def __init__(self, journal: Journal) -> None:
        self._entries = journal.entries
        self.position = 0

    async def __call__(self, effect: Effect) -> Outcome:
        """The recorded outcome; JournalError at the first effect that is not the recorded one."""
        if self.position >= len(self._entries):
            raise JournalError(f"the journal ends after {self.position} effects, and the run goes on")
        entry = self._entries[self.position]
        if entry.effect != effect:
            raise JournalError(
                f"effect {self.position + 1} is not the recorded one: {_difference(entry.effect, effect)}"
            )
        self.position += 1
        return entry.outcome


def _difference(recorded: Effect, now: Effect) -> str:
    """Where the JSON of the two parts, with what stands there."""
    old, new = msgspec.json.encode(recorded).decode(), msgspec.json.encode(now).decode()
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, at - 40)
    return f"recorded …{old[start : at + 60]!r}, now …{new[start : at + 60]!r}"
