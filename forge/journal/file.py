"""Journal files: their paths, and writing them during a run."""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import FileIO
from itertools import count, takewhile
from os import PathLike
from pathlib import Path
from typing import Self

import msgspec
from msgspec.structs import replace

from forge._installation import VERSION
from forge.errors import JournalError, UnrecordedError
from forge.interpreters import Interpreter
from forge.journal.records import (
    LARGEST_JOURNAL,
    AgainLine,
    EffectLine,
    Header,
    Journal,
    OutcomeLine,
    shortened,
    with_checksum,
)
from forge.journal.redaction import Redactor
from stages.effect import Effect, Execute, Outcome, Request, Send

# The journals of one message: that of its first run, of the runs that continued it, and of agents within it.
#
# `run.jsonl` is continued in `run.part-2.jsonl`, `run.part-3.jsonl` …. An agent that was called as a tool writes
# `run.CALL.jsonl`, where CALL is the id of the call; an agent that the message was handed over to, `run.hop-2.jsonl`.
# Each is a complete journal.


def journal_parts(path: str | PathLike[str]) -> tuple[Path, ...]:
    """The existing journals of a message, in the order in which they were written: `path`, then its parts."""
    numbered = (_part(Path(path), number) for number in count(1))
    return tuple(takewhile(Path.exists, numbered))


def next_part(path: str | PathLike[str]) -> Path:
    """The path for the next run of the message: `path` itself, or the first part that does not exist."""
    return _part(Path(path), len(journal_parts(path)) + 1)


def nested_journal(path: str | PathLike[str], call_id: str) -> Path:
    """The path for an agent that was called as a tool in the run with the journal `path`.

    Only letters, digits, `-` and `_` of the call's id are used, because servers may send anything.
    """
    plain = re.sub(r"[^A-Za-z0-9_-]", "", call_id)[:_LONGEST] or "call"
    return next_part(_named(Path(path), plain))


def hop_journal(path: str | PathLike[str], number: int) -> Path:
    """The path for the `number`th agent that a message was handed over to."""
    return Path(path) if number == 1 else _named(Path(path), f"hop-{number}")


def refuse_other_parts(path: str | PathLike[str]) -> None:
    """JournalError if the journal does not exist but parts of an earlier one do, which would seem to continue it."""
    if not Path(path).exists() and (second := _part(Path(path), 2)).exists():
        raise JournalError(f"{second} exists already and continues another {path}; write the journal elsewhere")


def _part(path: Path, number: int) -> Path:
    return path if number == 1 else _named(path, f"part-{number}")


def _named(path: Path, what: str) -> Path:
    return path.with_name(f"{path.stem}.{what}{path.suffix}")


_LONGEST = 60
"""Maximum characters of an id in a file name."""


# The file of a journal being written: appends lines, unless the file was changed.

if sys.platform != "win32":
    import fcntl

_LARGEST_OUTCOME = 512 * 1024**2
"""Maximum bytes of an outcome's line, reserved before an effect starts."""


class JournalFile:
    """The open file at `path`, locked for this run. `size` and `check` describe the lines in it."""

    def __init__(self, path: Path, file: FileIO, size: int = 0, check: str = "") -> None:
        self._path = path
        self._file = file
        self._size = size
        self._check = check

    @classmethod
    @contextmanager
    def new(cls, path: Path) -> Iterator[Self]:
        """A new file. JournalError if it exists already or cannot be created."""
        refuse_taken(path)
        with _opened(path, os.O_CREAT | os.O_EXCL) as file:
            yield cls(path.absolute(), file)

    @classmethod
    @contextmanager
    def after(cls, path: Path, size: int, check: str) -> Iterator[Self]:
        """The journal of that size and last checksum, as it was read; an incomplete last line is cut off.

        JournalError if another run is writing to it, or has written to it since it was read.
        """
        with _opened(path, 0) as file:
            end = f'{check}"}}\n'.encode()
            with path.open("rb") as written:
                written.seek(max(0, size - len(end)))
                unchanged = written.read(len(end)) == end
                if not unchanged or any(b"\n" in rest for rest in iter(lambda: written.read(65536), b"")):
                    raise JournalError(f"the journal {path} has changed since it was read: another run has resumed it")
            file.truncate(size)
            yield cls(path.absolute(), file, size, check)

    def append(self, line: bytes, *, room: int = 0, durable: bool = False) -> None:
        """Write the JSON object as the next line, leaving room for `room` more bytes. `durable`: wait for the disk.

        JournalError if the disk or the journal is full, or the file is not as this run left it.
        """
        self._refuse_changed()
        whole, check = with_checksum(line, self._check)
        if self._size + len(whole) + room > LARGEST_JOURNAL:
            raise JournalError(
                f"the journal {self._path} is full: it has {self._size} bytes, what comes next may take "
                f"{len(whole) + room}, and a journal has at most {LARGEST_JOURNAL}"
            )
        left = memoryview(whole)
        try:
            while left:
                left = left[self._file.write(left) :]
            if durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            then = "then resume the run" if self._size else "delete the file and start the run again"
            advice = f"; free some space, {then}" if error.errno in _FULL else ""
            raise JournalError(f"cannot write the journal {self._path}: {error.strerror}{advice}") from error
        self._size, self._check = self._size + len(whole), check

    def _refuse_changed(self) -> None:
        own = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except OSError as error:
            raise JournalError(f"the journal {self._path} was deleted or moved: {error.strerror}") from None
        if not os.path.samestat(own, there):
            raise JournalError(f"the journal {self._path} was replaced by another file")
        if own.st_size != self._size:
            raise JournalError(
                f"the journal {self._path} was changed by another program: "
                f"it has {own.st_size} bytes, and this run wrote {self._size}"
            )


def refuse_taken(path: Path) -> None:
    """JournalError if the file exists: a journal is never overwritten."""
    if path.is_dir():
        raise JournalError(f"{path} is a folder; name a file in it for the journal, such as {path / 'run.jsonl'}")
    if path.exists():
        raise JournalError(
            f"the file {path} already exists; resume that run with forge.resume_journal (forge resume), "
            "or write the journal elsewhere"
        )


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[FileIO]:
    """The file, accessible only to its owner, unbuffered, and locked while the run writes to it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | flags, 0o600)
    except OSError as error:
        elsewhere = "write it elsewhere (--journal FILE, or FORGE_STATE for all that forge keeps)"
        raise JournalError(f"cannot write the journal {path}: {error.strerror}; {elsewhere}") from None
    except UnicodeEncodeError:
        raise JournalError(f"{str(path)!r} cannot be the name of a file here") from None
    with FileIO(descriptor, "ab") as file:
        if sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JournalError(f"another run is writing the journal {path}") from None
        yield file


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


# Writing a journal: each effect before it is performed, its outcome before the run continues.


@contextmanager
def recording(
    interpret: Interpreter, path: str | PathLike[str], header: Header, redactor: Redactor | None = None
) -> Iterator[Interpreter]:
    """The interpreter, recording every effect and outcome in a new file at `path`, redacted by `redactor`.

    JournalError if the file exists already or cannot be written. Once the run has started, a failure to write is an
    UnrecordedError.
    """
    with JournalFile.new(Path(path)) as file:
        dated = replace(header, forge=VERSION, started=f"{datetime.now(UTC):%FT%TZ}")
        line = _encoded(dated, None, redactor)
        try:
            msgspec.json.decode(line, type=Header)
        except msgspec.DecodeError as error:
            raise JournalError(f"the initial state of the run cannot be written: {error}") from None
        file.append(line)
        yield _writing(interpret, file, redactor=redactor)


@contextmanager
def continuing(interpret: Interpreter, path: str | Path, journal: Journal) -> Iterator[Interpreter]:
    """The interpreter, recording at the end of the journal at `path`, which was read as `journal`.

    An incomplete last line is cut off. JournalError if another run is writing to it, or has since it was read. The
    first effect must be the one that `journal` has pending.
    """
    with JournalFile.after(Path(path), journal.size, journal.check) as file:
        pending = None if journal.pending is None else journal.effect(len(journal.entries))
        yield _writing(interpret, file, journal.last, pending=pending)


def _encoded(
    line: Header | EffectLine | AgainLine | OutcomeLine, about: Effect | Outcome | None, redactor: Redactor | None
) -> bytes:
    return redactor.written(line, about) if redactor else msgspec.json.encode(line)


def _writing(
    interpret: Interpreter,
    file: JournalFile,
    last: Request = Request(),  # noqa: B008 - frozen
    redactor: Redactor | None = None,
    pending: Effect | None = None,
) -> Interpreter:
    async def perform(effect: Effect) -> Outcome:
        nonlocal last, pending
        if pending is not None and pending != effect:
            raise JournalError("the run continues with an effect other than the pending one of its journal")
        begun = EffectLine(effect=shortened(effect, last)) if pending is None else AgainLine()
        line = _encoded(begun, effect, redactor)
        try:
            # A tool's effects cannot be undone: the record that it started must survive a power failure.
            file.append(line, room=_LARGEST_OUTCOME, durable=isinstance(effect, Execute))
        except JournalError as error:
            raise UnrecordedError(str(error)) from error
        pending = None
        last = effect.request if isinstance(effect, Send) else last
        outcome = await interpret(effect)
        line = _encoded(OutcomeLine(outcome=outcome), outcome, redactor)
        try:
            file.append(line)
        except JournalError as error:
            raise UnrecordedError(str(error), outcome) from error
        return outcome

    return perform
