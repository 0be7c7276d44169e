"""Write the journal: each effect before it is performed, its outcome before the run goes on, in a file of one's own."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

import msgspec
from msgspec.structs import replace

from forge.interpreters import Interpreter
from forge.interpreters.recorded import Done, Header, Journal, JournalError, Started, shortened
from forge.interpreters.redact import Redactor
from stages.effect import Effect, Execute, Outcome, Request, Send

if sys.platform != "win32":
    import fcntl


@contextmanager
def recording(
    interpret: Interpreter, path: str | Path, header: Header, redactor: Redactor | None = None
) -> Iterator[Interpreter]:
    """The interpreter, with all that passes through it written to a new file at `path`.

    `redactor` hides what must not be in it.

    JournalError if there is a file of that name already, or the disk is full.
    """
    from importlib.metadata import version  # noqa: PLC0415 - slow to import, and only a journal names the version

    with _opened(Path(path), os.O_CREAT | os.O_EXCL) as file:
        dated = replace(header, forge=version("forge-toolcalls"), started=f"{datetime.now(UTC):%FT%TZ}")
        _append(file, _encoded(dated, None, redactor))
        yield _writing(interpret, file, Request(), redactor)


@contextmanager
def continuing(interpret: Interpreter, path: str | Path, journal: Journal) -> Iterator[Interpreter]:
    """The interpreter, with what passes through it written to the end of the journal at `path`, as it was read.

    The part of a line that a crash left at its end is cut off. JournalError if another run writes to it, or has
    since it was read.
    """
    with _opened(Path(path), 0) as file:
        if Path(path).read_bytes().rfind(b"\n") + 1 != journal.size:
            raise JournalError(f"the journal {path} has changed since it was read: another run goes on with it")
        file.truncate(journal.size)
        yield _writing(interpret, file, journal.last)


def _encoded(line: Header | Started | Done, about: Effect | Outcome | None, redactor: Redactor | None) -> bytes:
    return redactor.written(line, about) if redactor else msgspec.json.encode(line)


def _writing(interpret: Interpreter, file: FileIO, last: Request, redactor: Redactor | None = None) -> Interpreter:
    async def perform(effect: Effect) -> Outcome:
        nonlocal last
        # What a tool does to the world cannot be undone: that it was begun must outlive a loss of power.
        begun = _encoded(Started(effect=shortened(effect, last)), effect, redactor)
        _append(file, begun, durable=isinstance(effect, Execute))
        last = effect.request if isinstance(effect, Send) else last
        outcome = await interpret(effect)
        _append(file, _encoded(Done(outcome=outcome), outcome, redactor))
        return outcome

    return perform


def refuse_taken(path: Path) -> None:
    """JournalError if there is a file already: a journal is never overwritten."""
    if path.exists():
        raise JournalError(
            f"there is a file {path} already; go on with that run by forge.resume_journal (forge resume), "
            "or write the journal elsewhere"
        )


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[FileIO]:
    """The file, for its owner only, unbuffered, and locked for as long as the run writes to it."""
    if flags & os.O_EXCL:
        refuse_taken(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | flags, 0o600)
    except OSError as error:
        raise JournalError(f"cannot write the journal {path}: {error.strerror}") from None
    with FileIO(descriptor, "ab") as file:
        file.name = str(path)
        _lock(file)
        yield file


def _lock(file: FileIO) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(f"another run is writing the journal {file.name}") from None


def _append(file: FileIO, line: bytes, *, durable: bool = False) -> None:
    left = memoryview(line + b"\n")
    try:
        while left:
            left = left[file.write(left) :]
        if durable:
            os.fsync(file.fileno())
    except OSError as error:
        advice = "; free some space, then resume the run" if error.errno in _FULL else ""
        raise JournalError(f"cannot write the journal {file.name}: {error.strerror}{advice}") from error


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
