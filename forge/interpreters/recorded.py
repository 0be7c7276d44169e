"""The journal: every effect and its outcome as JSON lines; and a replay that answers from it.

The first line holds the state that the run began with, so the file is all that a replay needs. Each further
line is written before the run goes on, so a journal that ends early is a run that ended early.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from forge.errors import ForgeError
from forge.interpreters import Interpreter
from stages.effect import Effect, Outcome
from stages.state import SCHEMA_VERSION, State


class JournalError(ForgeError):
    """A journal cannot be read, or the run that is replayed does something that is not in it."""


class Header(Struct, frozen=True, kw_only=True):
    """The first line of a journal."""

    workflow: str
    state: State
    version: int = SCHEMA_VERSION


class Entry(Struct, frozen=True, kw_only=True):
    """Every further line: what was asked of the world, and what became of it."""

    effect: Effect
    outcome: Outcome


class Journal(Struct, frozen=True, kw_only=True):
    """A whole journal, read back."""

    header: Header
    entries: tuple[Entry, ...]


@contextmanager
def recording(interpret: Interpreter, path: str | Path | None, workflow: str, state: State) -> Iterator[Interpreter]:
    """The interpreter, with all that passes through it written to the file at `path`; None: not written."""
    if path is None:
        yield interpret
        return
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = Path(path).open("wb")  # noqa: SIM115 - closed below; opening it may fail for reasons of its own
    except OSError as error:
        raise JournalError(f"cannot write the journal {path}: {error.strerror}") from None
    with file:
        _append(file, Header(workflow=workflow, state=state))

        async def perform(effect: Effect) -> Outcome:
            outcome = await interpret(effect)
            _append(file, Entry(effect=effect, outcome=outcome))
            return outcome

        yield perform


def _append(file: BinaryIO, line: Header | Entry) -> None:
    file.write(msgspec.json.encode(line) + b"\n")
    file.flush()


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
    return Journal(header=header, entries=tuple(_entry(path, n, line) for n, line in enumerate(whole[1:], start=2)))


def _entry(path: str | Path, number: int, line: bytes) -> Entry:
    try:
        return msgspec.json.decode(line, type=Entry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JournalError(f"{path}, line {number}: {error}") from None


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
