"""The file of a journal being written: each line is appended to what this run wrote, or refused."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Self

from forge.errors import JournalError
from forge.journal.lines import LARGEST_JOURNAL, with_checksum

if sys.platform != "win32":
    import fcntl

LARGEST_OUTCOME = 512 * 1024**2
"""Maximum bytes of an outcome's line, which are reserved before an effect starts."""


class JournalFile:
    """The open file at `path`, locked for this run. `size` and `check` are those of the lines that are in it."""

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
            if not _ends(path, size, check):
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
        self._write(whole, durable=durable)
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

    def _write(self, line: bytes, *, durable: bool) -> None:
        left = memoryview(line)
        try:
            while left:
                left = left[self._file.write(left) :]
            if durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            then = "then resume the run" if self._size else "delete the file and start the run again"
            advice = f"; free some space, {then}" if error.errno in _FULL else ""
            raise JournalError(f"cannot write the journal {self._path}: {error.strerror}{advice}") from error


def refuse_taken(path: Path) -> None:
    """JournalError if the file exists: a journal is never overwritten."""
    if path.is_dir():
        raise JournalError(f"{path} is a folder; name a file in it for the journal, such as {path / 'run.jsonl'}")
    if path.exists():
        raise JournalError(
            f"the file {path} already exists; resume that run with forge.journal.resume_journal (forge resume), "
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
        _lock(file, path)
        yield file


def _lock(file: FileIO, path: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(f"another run is writing the journal {path}") from None


def _ends(path: Path, size: int, check: str) -> bool:
    """Whether the file's last complete line ends at `size`, with that checksum."""
    with path.open("rb") as file:
        file.seek(max(0, size - len(check) - 3))
        if file.read(len(check) + 3) != f'{check}"}}\n'.encode():
            return False
        return not any(b"\n" in rest for rest in iter(lambda: file.read(65536), b""))


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
