"""Lines of a journal: JSON objects; the last field is a checksum of the line and all lines before it."""

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from msgspec import Struct

from forge.errors import JournalError
from stages.repair.decoding import decode

JOURNAL_VERSION = 3
"""Version of the format; a reader refuses any other."""

LARGEST_JOURNAL = 2 * 1024**3
"""Maximum bytes of a journal: the writer ends the run before exceeding it, the reader refuses a larger file."""

_OPENING = b'{"journal":'
"""How every journal begins."""

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


class CheckedLines:
    """The complete lines of the journal at `path`, each verified by its checksum; an incomplete last one is left out.

    `size` is the bytes of the lines read so far, `check` the last one's checksum. JournalError for a file that cannot
    be read, is not a journal, or whose lines are not those that were written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.size = 0
        self.check = ""
        self.number = 0

    def __iter__(self) -> Iterator[bytes]:
        try:
            # A device or a pipe has no end, and opening a pipe may block forever.
            if not stat.S_ISREG(os.stat(self.path).st_mode):  # noqa: PTH116 - pathlib is slow to load
                raise JournalError(f"{self.path} is not a file")
            with open(self.path, "rb") as file:  # noqa: PTH123 - as above
                yield from self._lines(file)
        except OSError as error:
            raise JournalError(f"cannot read the journal {self.path}: {error.strerror}") from None
        except UnicodeEncodeError:
            raise JournalError(f"{str(self.path)!r} cannot be the name of a file here") from None

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        if os.fstat(file.fileno()).st_size > LARGEST_JOURNAL:
            raise JournalError(f"{self.path} is not a journal: it has more than {LARGEST_JOURNAL} bytes")
        while (line := file.readline(LARGEST_JOURNAL)).endswith(b"\n"):
            self.number += 1
            if self.number == 1:
                _refuse_other_version(self.path, line)
            if not self._is_next(line):
                raise JournalError(f"{self.path}, line {self.number}: {_DAMAGED}")
            self.size += len(line)
            yield line
        self._refuse_rest(line)

    def _is_next(self, line: bytes) -> bool:
        """Whether the line was written directly after the previous ones."""
        check = _check(memoryview(line)[:-_SUFFIX], self.check)
        if line[-_SUFFIX:] != _BEFORE + check.encode() + _AFTER:
            return False
        self.check = check
        return True

    def _refuse_rest(self, rest: bytes) -> None:
        """JournalError unless the rest is an incomplete line after complete ones, as a crash leaves it."""
        if self._is_next(rest[:-1] + b"\n"):
            raise JournalError(f"{self.path}, line {self.number + 1}: {_DAMAGED}")
        if self.number:
            return
        if not rest:
            raise JournalError(f"{self.path} is empty: {_NOTHING}")
        if rest.startswith(_OPENING) or _OPENING.startswith(rest):
            raise JournalError(f"{self.path} ends within its first line: {_NOTHING}")
        raise JournalError(f"{self.path} is not a journal: it has no complete line")


class _Versions(Struct):
    """What the first line says of its format: `journal`, and `version` before that was 3."""

    journal: int = 0
    version: int = 0


_versions = msgspec.json.Decoder(_Versions)


def _refuse_other_version(path: str | os.PathLike[str], line: bytes) -> None:
    try:
        said = decode(_versions, line)
    except msgspec.DecodeError as error:
        raise JournalError(f"{path} is not a journal: line 1: {error}") from None
    found = said.journal or said.version
    if not found:
        raise JournalError(f"{path} is not a journal: line 1 names no version")
    if found != JOURNAL_VERSION:
        raise JournalError(
            f"{path} was written by another version of forge: {found}, and this one reads {JOURNAL_VERSION}"
        )


_DAMAGED = (
    "its checksum is wrong: this line was damaged or changed, or an earlier one was removed, added or moved; "
    "the lines before it are intact"
)
_NOTHING = "the program ended before the run started, and nothing was done; delete the file and start the run again"
