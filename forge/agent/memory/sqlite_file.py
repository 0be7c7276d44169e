"""The file of a SQLiteStore: made, upgraded and opened for one transaction at a time; errors in words."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path

from forge.errors import DefinitionError, StoreError

_APPLICATION = 0x666F7267
"""`forg`: tells a memory file from the SQLite databases of other programs."""

FORMATS = (
    """
    CREATE TABLE counter (revision INTEGER NOT NULL);
    INSERT INTO counter VALUES (0);
    CREATE TABLE session (name TEXT PRIMARY KEY, revision INTEGER NOT NULL, title TEXT NOT NULL,
        messages INTEGER NOT NULL, saved REAL NOT NULL, rest BLOB NOT NULL);
    CREATE TABLE message (session TEXT NOT NULL, place INTEGER NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (session, place)) WITHOUT ROWID;
    CREATE TABLE fact (id INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, text TEXT NOT NULL, at REAL NOT NULL,
        UNIQUE (space, text));
    CREATE VIRTUAL TABLE fact_words USING fts5 (words, tokenize = 'ascii');
    """,
)
"""What makes each format of the file from the one before it. One that is released stays as it is; add another."""


class SQLiteFile:
    """The file at `path`. A connection is opened for each transaction, so threads, forks and deletion do no harm.

    `wait` is how many seconds a transaction waits for other processes.
    """

    def __init__(self, path: str | PathLike[str], wait: float) -> None:
        if str(path).startswith(":memory:") or not str(path):
            problem = f"{str(path)!r} is no path of a file; use InProcessStore() for a memory without one"
            raise DefinitionError((problem,))
        self.path = Path(path).expanduser().absolute()
        self._wait = wait
        self._known = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees the file as it is now, whatever is written meanwhile."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are made all together at the end, or not at all."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._explained(), closing(self._opened()) as connection:
            connection.execute(begin)
            yield connection
            connection.execute("COMMIT")  # without it, closing undoes everything

    def _opened(self) -> sqlite3.Connection:
        if self._known and not self.path.exists():
            raise StoreError(
                f"the memory file {self.path} was deleted or moved while it was in use; put it back, or make a new "
                "SQLiteStore for a new one"
            )
        if not self._known:
            _create(self.path)
        try:
            connection = self._connected("NORMAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_IOERR_SHMSIZE:
                raise
            # The disk is too full for the `-shm` that all users share; whoever uses the file alone needs none.
            connection = self._connected("EXCLUSIVE")
        if not self._known:
            try:
                self._upgrade(connection)
            except BaseException:
                connection.close()
                raise
            self._known = True
        return connection

    def _connected(self, locking: str) -> sqlite3.Connection:
        """A connection that can read the file."""
        uri = f"{self.path.as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=self._wait, isolation_level=None)
        try:
            connection.execute(f"PRAGMA locking_mode = {locking}")
            connection.execute("PRAGMA user_version").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Bring the file to today's format. StoreError for a file of another program, or of a newer forge."""
        connection.execute("BEGIN")  # all of it is read as it was at one moment: another process may be writing it
        number = self._format(connection)
        connection.execute("COMMIT")
        if number == len(FORMATS):
            return
        connection.execute("PRAGMA journal_mode = WAL")  # readers and a writer do not wait for one another
        connection.execute("BEGIN IMMEDIATE")
        for number in range(self._format(connection), len(FORMATS)):  # another process may have been quicker
            for statement in FORMATS[number].split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(FORMATS)}")
        connection.execute("COMMIT")

    def _format(self, connection: sqlite3.Connection) -> int:
        """The number of the file's format; 0 for a new file."""
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        number: int = connection.execute("PRAGMA user_version").fetchone()[0]
        if owner != _APPLICATION and (number or connection.execute("SELECT 1 FROM sqlite_master").fetchone()):
            raise StoreError(
                f"{self.path} is the SQLite database of another program, not a memory file; choose another path"
            )
        if number > len(FORMATS):
            raise StoreError(
                f"the memory file {self.path} has format {number}, and this forge reads formats up to {len(FORMATS)}: "
                "it was written by a newer one; upgrade forge-toolcalls, or choose another path"
            )
        return number

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What SQLite says, as a StoreError that names the file and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            what = _TROUBLES.get(code, "cannot be used").format(wait=self._wait)
            raise StoreError(f"the memory file {self.path} {what} (SQLite: {error})") from error


def is_database(path: Path, size: int) -> bool:
    """Whether this real path is a memory file that this process uses, or a SQLite database by its name and size.

    Such a file must not be opened by anything but SQLite: closing any descriptor of a file drops all locks that the
    process has on it (sqlite.org/howtocorrupt.html, 2.2), and what SQLite then writes is lost.
    """
    base = path.with_name(path.name.removesuffix("-shm"))  # it has locks of its own
    return base in _USED or (base.suffix.lower() in _SUFFIXES and size % _SECTOR == 0)


def _create(path: Path) -> None:
    """An empty file that only its owner can read, unless there is one, which is not opened: see `is_database`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StoreError(f"{path} is a folder; name a file in it for the memory, such as {path / 'memory.db'}")
        real = Path(os.path.realpath(path))
        _USED.add(real)
        with _CREATING, suppress(FileExistsError):  # nobody uses the new file before it is closed here
            os.close(os.open(real, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StoreError(
            f"the memory file {path} cannot be written: {error.strerror}; choose a path where it can be"
        ) from None


_CREATING = threading.Lock()
_USED: set[Path] = set()
_SUFFIXES = frozenset({".db", ".db3", ".sqlite", ".sqlite3"})
_SECTOR = 512
"""The size of a database is a multiple of it; of a text with such a name, hardly ever."""

_TROUBLES = {
    sqlite3.SQLITE_BUSY: (
        "is locked by another process, which has not let go of it for {wait:g} s; end that process or wait for it, "
        "then try again"
    ),
    sqlite3.SQLITE_NOTADB: "is not a SQLite database, and was left as it is; choose another path",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore a backup, or see what `sqlite3 FILE .recover` can still read of it",
    sqlite3.SQLITE_READONLY: "cannot be written: the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened, or the files that belong to it (-wal, -shm) cannot be made",
    sqlite3.SQLITE_FULL: "cannot grow, as the disk is full; nothing was changed. Free some space, then try again",
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written: the disk is full, a quota is used up, or the disk is faulty. Free some space or "
        "check the disk, then try again"
    ),
}
