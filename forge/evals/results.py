"""Files of results: one row per line, read and appended."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Self

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from forge.errors import ForgeError
from forge.evals.row import ROW_VERSION, Row, RowKey
from stages.decoding import decode, sound_struct

# Reading results: one JSON row per line, in the order in which the runs ended.


_LARGEST = 512 * 1024**2
"""Maximum bytes of a results file: a million rows."""


class StoredRows(Struct, frozen=True, kw_only=True):
    """The rows of a file. `size` is the bytes of its complete lines; `torn`: the last line is incomplete."""

    rows: tuple[Row, ...]
    size: int = 0
    torn: bool = False


class _Versioned(Struct):
    version: int


_BEGINNING = f'{{"version":{ROW_VERSION},"configuration":{{"model":'.encode()
"""The beginning of every row."""

_rows = msgspec.json.Decoder(Row)
_versions = msgspec.json.Decoder(_Versioned)


def read_results(path: str | PathLike[str]) -> tuple[Row, ...]:
    """The rows of the file. ForgeError names a line that is invalid, of another version, or a duplicate run.

    ForgeError also for an incomplete last line, which a killed runner leaves.
    """
    found = stored_rows(path)
    if found.torn:
        raise ForgeError(
            f"{path}, line {len(found.rows) + 1} is incomplete, as left by a forge eval run that was killed. "
            "The same forge eval run again cuts the line off and repeats that run; or remove the line"
        )
    return found.rows


def stored_rows(path: str | PathLike[str]) -> StoredRows:
    """The rows of the file for a runner, which truncates an incomplete last line."""
    lines = _content(path).split(b"\n")
    rows = tuple(_row(path, number, line) for number, line in enumerate(lines[:-1], start=1))
    last = lines[-1]
    if last.strip() and not last.startswith(_BEGINNING) and not _BEGINNING.startswith(last):
        line = f", line {len(lines)} is not a row of results. Remove the line" if rows else " is not a file of results"
        raise ForgeError(f"{path}{line}")
    refuse_repeated(rows, str(path))
    return StoredRows(rows=rows, size=sum(map(len, lines[:-1])) + len(rows), torn=bool(lines[-1].strip()))


def rows_with(path: Path, text: str) -> Iterator[Row]:
    """The rows in lines that contain the text; invalid lines and files are skipped."""
    wanted, content = text.encode(), b""
    with suppress(ForgeError):
        content = _content(path)
    for line in content.split(b"\n"):
        if wanted in line:
            with suppress(msgspec.DecodeError):
                yield sound_struct(decode(_rows, line))


def refuse_repeated(rows: Iterable[Row], where: str) -> None:
    """ForgeError for a duplicate run, which would count twice. `where` names the source of the rows."""
    seen: set[RowKey] = set()
    for row in rows:
        if row.key in seen:
            raise ForgeError(
                f"{where}: scenario {row.scenario}, seed {row.seed}, {row.configuration.name} on "
                f"{row.configuration.model} is there twice; a run may count only once. Remove one of the two"
            )
        seen.add(row.key)


def _content(path: str | PathLike[str]) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)  # a device has no end
    except OSError as error:
        raise ForgeError(f"cannot read the results {path}: {error.strerror}") from None
    if len(content) > _LARGEST:
        raise ForgeError(f"{path} is not a file of results: it has more than {_LARGEST:,} bytes")
    return content


def _row(path: str | PathLike[str], number: int, line: bytes) -> Row:
    place = f"{path}, line {number}"
    try:
        version = decode(_versions, line).version
    except msgspec.DecodeError as error:
        raise ForgeError(
            f"{place} is not a row of results ({error}). Remove the line, and run the same forge eval run again"
        ) from None
    if version != ROW_VERSION:
        raise ForgeError(
            f"{place} is of version {version} of the format, this forge reads version {ROW_VERSION} only. "
            "Run the scenarios again"
        )
    try:
        return sound_struct(decode(_rows, line))
    except msgspec.DecodeError as error:
        raise ForgeError(f"{place} is not a row of results: {error}") from None


# Appending results: the file is locked for one runner, and repaired before anything is added.


def journal_folder(path: Path) -> Path:
    """The journal folder of these results: `results.journals` beside `results.jsonl`."""
    return path.parent / f"{path.stem}.journals"


class RowFile:
    """The file at `path` and its rows. `torn`: an incomplete last line was truncated."""

    def __init__(self, path: Path, found: StoredRows) -> None:
        self.path = path
        self.rows, self.torn = list(found.rows), found.torn

    @classmethod
    @contextmanager
    def locked(cls, path: Path) -> Iterator[Self]:
        """The file, created if necessary. ForgeError if another runner has it, or it cannot be read or written."""
        folder = journal_folder(path)
        lock = FileLock(folder / "lock")
        if path.is_dir():
            raise ForgeError(f"{path} is a folder; name a file in it for the results, such as {path / 'results.jsonl'}")
        try:
            if path.exists() and not _of_rows(path):
                raise ForgeError(f"{path} is not a file of results, and is left as it is; name another one with -o")
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise ForgeError(
                f"another forge eval run is writing to {path}; wait for it, or choose another file"
            ) from None
        except OSError as error:
            raise _unwritable(path, error) from None
        with lock:
            try:
                found = stored_rows(path) if path.exists() else StoredRows(rows=())
                if found.torn:
                    os.truncate(path, found.size)
                yield cls(path, found)
            finally:
                if not path.exists() and [*folder.iterdir()] == [folder / "lock"]:  # refused before the first run
                    (folder / "lock").unlink()
                    folder.rmdir()

    def append(self, row: Row) -> None:
        """Append the row and flush it to disk. ForgeError if that fails."""
        try:
            with self.path.open("ab", buffering=0) as file:
                left = memoryview(msgspec.json.encode(row) + b"\n")
                while left:  # a nearly full disk takes only a part
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self.rows.append(row)


def _of_rows(path: Path) -> bool:
    """Whether the file is empty, or begins as rows of any version do."""
    beginning = b'{"version":'
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.read(len(beginning))
    return not first.strip() or beginning.startswith(first)


def _unwritable(path: Path, error: OSError) -> ForgeError:
    return ForgeError(f"the results cannot be written to {path}: {error.strerror or error}")
