"""Memory in one SQLite file, which several processes may share."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import ParamSpec, TypeVar

from forge.agent.memory.protocol import SavedSession, SessionSummary, unchanged
from forge.errors import DefinitionError, SessionChangedError, StoreError, checked_options
from stages.memory import Fact, query_words, ranked, title, words_of
from stages.options import Seconds
from stages.saved import SavedParts, load_parts, save_parts
from stages.state import State

# The file of a SQLiteStore: created, upgraded, and opened for one transaction at a time.

_APPLICATION = 0x666F7267
"""`forg`: distinguishes memory files from other SQLite databases."""

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
"""The migrations from one format to the next. Never change a released one; append another."""


class SQLiteFile:
    """The file at `path`, opened for each transaction, so that threads, forks and deletion do no harm.

    `wait` is the maximum seconds to wait for other processes.
    """

    def __init__(self, path: str | PathLike[str], wait: float) -> None:
        if str(path).startswith(":memory:") or not str(path):
            problem = f"{str(path)!r} is not the path of a file; use InProcessStore() for a memory without one"
            raise DefinitionError((problem,))
        self.path = Path(path).expanduser().absolute()
        self._wait = wait
        self._known = False

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection with a consistent snapshot of the file."""
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection with one transaction."""
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._explained(), closing(self._opened()) as connection:
            connection.execute(begin)
            yield connection
            connection.execute("COMMIT")  # without it, closing rolls back

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
            # The disk is too full for the shared `-shm` file; exclusive access needs none.
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
        """A connection that has read the file successfully."""
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
        """Migrate the file to the current format. StoreError for a file of another program, or of a newer forge."""
        connection.execute("BEGIN")  # read a consistent snapshot: another process may be writing
        number = self._format(connection)
        connection.execute("COMMIT")
        if number == len(FORMATS):
            return
        give_up = time.monotonic() + self._wait
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")  # readers and a writer do not block each other
            except sqlite3.OperationalError as error:
                # SQLite itself does not wait here: this reads the file before it writes to it, and two connections that
                # both have read and both wait to write would never end (sqlite.org/c3ref/busy_handler.html).
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(0.01)
            else:
                break
        connection.execute("BEGIN IMMEDIATE")
        for number in range(self._format(connection), len(FORMATS)):  # another process may have been faster
            for statement in FORMATS[number].split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(FORMATS)}")
        connection.execute("COMMIT")

    def _format(self, connection: sqlite3.Connection) -> int:
        """The file's format; 0 for a new file."""
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
        """Turns SQLite's errors into a StoreError with the file and a remedy."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            what = _TROUBLES.get(code, "cannot be used").format(wait=self._wait)
            raise StoreError(f"the memory file {self.path} {what} (SQLite: {error})") from error


def is_database(path: Path, size: int) -> bool:
    """Whether this real path is a memory file in use by this process, or an SQLite database by name and size.

    Only SQLite may open such a file: closing any other descriptor of it drops all locks of this process
    (sqlite.org/howtocorrupt.html, 2.2), and later writes are lost.
    """
    base = path.with_name(path.name.removesuffix("-shm"))  # it has locks of its own
    return base in _USED or (base.suffix.lower() in _SUFFIXES and size % _SECTOR == 0)


def _create(path: Path) -> None:
    """Create an empty file that only its owner can read. An existing one is not opened: see `is_database`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StoreError(f"{path} is a folder; name a file in it for the memory, such as {path / 'memory.db'}")
        real = Path(os.path.realpath(path))
        _USED.add(real)
        with _CREATING, suppress(FileExistsError):  # nobody else uses the new file before it is closed here
            os.close(os.open(real, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StoreError(
            f"the memory file {path} cannot be written: {error.strerror}; choose a path where it can be"
        ) from None


_CREATING = threading.Lock()
_USED: set[Path] = set()
_SUFFIXES = frozenset({".db", ".db3", ".sqlite", ".sqlite3"})
_SECTOR = 512
"""A database's size is a multiple of it; a text file with such a name hardly ever is."""

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


# SQLiteStore: sessions and facts in one SQLite file, for any number of processes.


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _in_thread(work: Callable[_P, _T]) -> Callable[_P, Coroutine[object, object, _T]]:
    """The operation, run in a thread, so that it never blocks the event loop."""

    @wraps(work)
    async def awaited(*args: _P.args, **options: _P.kwargs) -> _T:
        return await asyncio.to_thread(work, *args, **options)

    return awaited


class SQLiteStore:
    """A SessionStore and a FactStore in the file at `path`, created on first use and private to its owner.

    A save writes only new messages. `wait` is the maximum seconds to wait for other processes. StoreError for a file
    that cannot be used.
    """

    @checked_options
    def __init__(self, path: str | PathLike[str], *, wait: Seconds = 5.0) -> None:
        self._file = SQLiteFile(path, wait)

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self._file.path)!r})"

    @_in_thread
    def load(self, name: str) -> SavedSession | None:
        """The session; None if there is none with this name. StoreError for one that is damaged or too new."""
        with self._file.reading() as db:
            row = db.execute(_STATE, (name,)).fetchone()
            messages = _messages(db, name)
        if row is None:
            return None
        revision, rest = row
        try:
            state = load_parts(SavedParts(rest=rest, messages=messages))
        except ValueError as error:
            raise StoreError(
                f"the session {name!r} in {self._file.path} cannot be read: {error}. Other sessions can; delete this "
                "one, or restore a backup of the file"
            ) from None
        return SavedSession(state=state, revision=revision)

    @_in_thread
    def save(self, name: str, state: State, *, after: int) -> int:
        """Save the session and return its new revision. SessionChangedError unless its revision is `after`."""
        parts, history = save_parts(state), state.history
        with self._file.writing() as db:
            row = db.execute("SELECT revision FROM session WHERE name = ?", (name,)).fetchone()
            if (found := row[0] if row else 0) != after:
                raise SessionChangedError(name, after, found)
            db.execute("UPDATE counter SET revision = revision + 1")
            revision: int = db.execute("SELECT revision FROM counter").fetchone()[0]
            db.execute(_SAVE, (name, revision, title(history), len(history), time.time(), parts.rest))
            kept = unchanged(_messages(db, name), parts.messages)
            db.execute("DELETE FROM message WHERE session = ? AND place >= ?", (name, kept))
            added = ((name, place, parts.messages[place]) for place in range(kept, len(parts.messages)))
            db.executemany("INSERT INTO message (session, place, body) VALUES (?, ?, ?)", added)
        return revision

    @_in_thread
    def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions, last saved first."""
        with self._file.reading() as db:
            rows = db.execute("SELECT name, title, messages, saved FROM session ORDER BY revision DESC").fetchall()
        return tuple(SessionSummary(name=n, title=begun, messages=m, saved=at) for n, begun, m, at in rows)

    @_in_thread
    def delete(self, name: str) -> bool:
        """Delete the session; False if there was none with this name."""
        with self._file.writing() as db:
            db.execute("DELETE FROM message WHERE session = ?", (name,))
            return db.execute("DELETE FROM session WHERE name = ?", (name,)).rowcount > 0

    @_in_thread
    def remember(self, space: str, text: str) -> Fact:
        """Store the fact, or return the existing one with the same text."""
        with self._file.writing() as db:
            same = db.execute(_SAME, (space, text)).fetchone()
            if same:
                return _fact(same)
            values = (space, text, time.time())
            number = db.execute("INSERT INTO fact (space, text, at) VALUES (?, ?, ?)", values).lastrowid
            words = " ".join(words_of(text))
            db.execute("INSERT INTO fact_words (rowid, words) VALUES (?, ?)", (number, words))
            return _fact((number or 0, text, values[-1]))

    @_in_thread
    def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        """Up to `limit` facts of the space that share a word with the query, the most relevant first."""
        # Words consist of letters and digits only, so they contain no FTS5 syntax.
        match = " OR ".join(f'"{word}"' for word in query_words(query))
        with self._file.reading() as db:
            total = db.execute("SELECT count(*) FROM fact WHERE space = ?", (space,)).fetchone()[0]
            rows = db.execute(_SHARING, (match, space)) if match else db.execute(_NEWEST, (space, limit))
            return ranked(map(_fact, rows), query, total, limit)

    @_in_thread
    def forget(self, space: str, fact: int) -> bool:
        """Delete the fact with this id; False if the space has none."""
        with self._file.writing() as db:
            gone = db.execute("DELETE FROM fact WHERE space = ? AND id = ?", (space, fact)).rowcount > 0
            if gone:
                db.execute("DELETE FROM fact_words WHERE rowid = ?", (fact,))
            return gone


_SAVE = """
    INSERT INTO session (name, revision, title, messages, saved, rest) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, title = excluded.title,
        messages = excluded.messages, saved = excluded.saved, rest = excluded.rest
"""
# Convert to bytes: in an edited or damaged file, a column may hold any type.
_STATE = "SELECT revision, CAST(rest AS BLOB) FROM session WHERE name = ?"
_BODIES = "SELECT CAST(body AS BLOB) FROM message WHERE session = ? ORDER BY place"
_SAME = "SELECT id, text, at FROM fact WHERE space = ? AND text = ?"
_NEWEST = "SELECT id, text, at FROM fact WHERE space = ? ORDER BY id DESC LIMIT ?"
_SHARING = """
    SELECT id, text, at FROM fact_words JOIN fact ON fact.id = fact_words.rowid WHERE fact_words MATCH ? AND space = ?
"""


def _messages(db: sqlite3.Connection, session: str) -> tuple[bytes, ...]:
    rows = db.execute(_BODIES, (session,))
    return tuple(body for (body,) in rows)


def _fact(row: tuple[int, str, float]) -> Fact:
    number, text, at = row
    return Fact(id=number, text=text, at=at)
