"""The file that a runner appends rows to: locked for it, whole after any end, read before anything is added."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec
from filelock import FileLock, Timeout

from forge.errors import ForgeError
from forge.evals.results import StoredRows, stored_rows
from forge.evals.row import Row


def journal_folder(path: Path) -> Path:
    """The folder with the journals of these results: `results.journals` beside `results.jsonl`."""
    return path.parent / f"{path.stem}.journals"


class RowFile:
    """The file at `path`, and the rows in it. `torn`: a last line that was begun and never ended has been cut off."""

    def __init__(self, path: Path, found: StoredRows) -> None:
        self.path = path
        self.rows, self.torn = list(found.rows), found.torn

    @classmethod
    @contextmanager
    def locked(cls, path: Path) -> Iterator[Self]:
        """The file, made if it is not there. ForgeError if another runner has it, or it cannot be read or written."""
        with _locked(path):
            found = stored_rows(path) if path.exists() else StoredRows(rows=())
            if found.torn:
                os.truncate(path, found.size)
            yield cls(path, found)

    def append(self, row: Row) -> None:
        """Add the row; it is on the disk when this returns. ForgeError if that is not possible."""
        try:
            with self.path.open("ab", buffering=0) as file:
                left = memoryview(msgspec.json.encode(row) + b"\n")
                while left:  # a disk that is nearly full takes a part of it
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from None
        self.rows.append(row)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    folder = journal_folder(path)
    if path.is_dir():
        raise ForgeError(f"{path} is a folder; name a file in it for the results, such as {path / 'results.jsonl'}")
    try:
        if path.exists():
            _refuse_foreign(path)
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise ForgeError(f"another forge eval run is writing to {path}; wait for it, or choose another file") from None
    except OSError as error:
        raise _unwritable(path, error) from None
    with lock:
        yield


def _refuse_foreign(path: Path) -> None:
    """ForgeError for what begins otherwise than rows of any version do, before anything is made beside it."""
    beginning = b'{"version":'
    if path.is_file():
        with path.open("rb") as file:
            first = file.read(len(beginning))
        if not first.strip() or beginning.startswith(first):
            return
    raise ForgeError(f"{path} is not a file of results, and is left as it is; name another one with -o")


def _unwritable(path: Path, error: OSError) -> ForgeError:
    return ForgeError(f"the results cannot be written to {path}: {error.strerror or error}")
