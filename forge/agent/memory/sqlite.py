"""SQLiteStore: sessions and facts in one SQLite file, which any number of processes may use at the same time."""

import asyncio
import sqlite3
import time
from os import PathLike

from forge.agent.memory.protocol import SavedSession, SessionSummary
from forge.agent.memory.sqlite_file import SQLiteFile
from forge.errors import SessionChangedError, StoreError
from forge.runtime.options import checked_options
from stages.memory import Fact, query_words, ranked, title, words_of
from stages.options import Seconds
from stages.saved import SavedParts, load_parts, save_parts
from stages.state import State


class SQLiteStore:
    """A SessionStore and a FactStore in the file at `path`, made when it is first used, for its owner alone.

    Everything runs in threads, so the event loop is never blocked. A save writes only the messages that are new.
    `wait` is how many seconds to wait for other processes. StoreError, in words, for a file that cannot be used.
    """

    @checked_options
    def __init__(self, path: str | PathLike[str], *, wait: Seconds = 5.0) -> None:
        self._file = SQLiteFile(path, wait)

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self._file.path)!r})"

    async def load(self, name: str) -> SavedSession | None:
        """The session; None: there is none of this name. StoreError for one that is damaged or too new."""
        return await asyncio.to_thread(self._load, name)

    async def save(self, name: str, state: State, *, after: int) -> int:
        """Save the session and return its new revision. SessionChangedError unless its revision is `after`."""
        return await asyncio.to_thread(self._save, name, state, after)

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions, the last saved first."""
        return await asyncio.to_thread(self._sessions)

    async def delete(self, name: str) -> bool:
        """Delete the session; False: there was none of this name."""
        return await asyncio.to_thread(self._delete, name)

    async def remember(self, space: str, text: str) -> Fact:
        """Keep the fact, or return the one with the same text."""
        return await asyncio.to_thread(self._remember, space, text)

    async def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        """Up to `limit` facts of the space that share a word with the query, the most relevant first."""
        return await asyncio.to_thread(self._recall, space, query, limit)

    async def forget(self, space: str, fact: int) -> bool:
        """Delete the fact with this id; False: the space has none."""
        return await asyncio.to_thread(self._forget, space, fact)

    def _load(self, name: str) -> SavedSession | None:
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

    def _save(self, name: str, state: State, after: int) -> int:
        parts, history = save_parts(state), state.history
        with self._file.writing() as db:
            row = db.execute("SELECT revision FROM session WHERE name = ?", (name,)).fetchone()
            if (found := row[0] if row else 0) != after:
                raise SessionChangedError(name, after, found)
            db.execute("UPDATE counter SET revision = revision + 1")
            revision: int = db.execute("SELECT revision FROM counter").fetchone()[0]
            db.execute(_SAVE, (name, revision, title(history), len(history), time.time(), parts.rest))
            _write(db, name, parts.messages)
        return revision

    def _sessions(self) -> tuple[SessionSummary, ...]:
        with self._file.reading() as db:
            rows = db.execute("SELECT name, title, messages, saved FROM session ORDER BY revision DESC").fetchall()
        return tuple(SessionSummary(name=n, title=begun, messages=m, saved=at) for n, begun, m, at in rows)

    def _delete(self, name: str) -> bool:
        with self._file.writing() as db:
            db.execute("DELETE FROM message WHERE session = ?", (name,))
            return db.execute("DELETE FROM session WHERE name = ?", (name,)).rowcount > 0

    def _remember(self, space: str, text: str) -> Fact:
        with self._file.writing() as db:
            same = db.execute(_SAME, (space, text)).fetchone()
            if same:
                return _fact(same)
            values = (space, text, time.time())
            number = db.execute("INSERT INTO fact (space, text, at) VALUES (?, ?, ?)", values).lastrowid
            words = " ".join(words_of(text))
            db.execute("INSERT INTO fact_words (rowid, words) VALUES (?, ?)", (number, words))
            return _fact((number or 0, text, values[-1]))

    def _recall(self, space: str, query: str, limit: int) -> tuple[Fact, ...]:
        # Only letters and digits are left of a word, so nothing of FTS5's syntax is.
        match = " OR ".join(f'"{word}"' for word in query_words(query))
        with self._file.reading() as db:
            total = db.execute("SELECT count(*) FROM fact WHERE space = ?", (space,)).fetchone()[0]
            rows = db.execute(_SHARING, (match, space)) if match else db.execute(_NEWEST, (space, limit))
            return ranked(map(_fact, rows), query, total, limit)

    def _forget(self, space: str, fact: int) -> bool:
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
# A column holds whatever an edited or damaged file has there: what is decoded is to be bytes.
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


def _write(db: sqlite3.Connection, session: str, messages: tuple[bytes, ...]) -> None:
    """Make these the session's messages; those at the beginning that are the same stay untouched."""
    before = _messages(db, session)
    pairs = enumerate(zip(before, messages, strict=False))
    kept = next((at for at, (old, new) in pairs if old != new), min(len(before), len(messages)))
    db.execute("DELETE FROM message WHERE session = ? AND place >= ?", (session, kept))
    added = ((session, place, messages[place]) for place in range(kept, len(messages)))
    db.executemany("INSERT INTO message (session, place, body) VALUES (?, ?, ?)", added)


def _fact(row: tuple[int, str, float]) -> Fact:
    number, text, at = row
    return Fact(id=number, text=text, at=at)
