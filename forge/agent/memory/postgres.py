"""PostgresStore: sessions and facts in a Postgres database, for agents on several machines."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString, TypeAlias

from forge.agent.memory.protocol import SavedSession, SessionSummary, unchanged
from forge.errors import DefinitionError, SessionChangedError, StoreError, checked_options, to_install
from stages.memory import Fact, query_words, ranked, title, words_of
from stages.saved import SavedParts, load_parts, save_parts
from stages.state import State

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.rows import class_row
except ImportError:
    raise ImportError(f"PostgresStore needs psycopg, which is not installed; {to_install('postgres')}") from None

_Database: TypeAlias = "psycopg.AsyncConnection[tuple[object, ...]]"

_FORMAT = 1
"""The version of the tables; a database with a higher one was written by a newer forge."""

_TABLES = """
CREATE TABLE IF NOT EXISTS forge_memory (format integer NOT NULL);
CREATE SEQUENCE IF NOT EXISTS forge_revision;
CREATE TABLE IF NOT EXISTS forge_session (name text PRIMARY KEY, revision bigint NOT NULL, title text NOT NULL,
    messages integer NOT NULL, saved double precision NOT NULL, rest bytea NOT NULL);
CREATE TABLE IF NOT EXISTS forge_message (session text NOT NULL REFERENCES forge_session ON DELETE CASCADE,
    place integer NOT NULL, body bytea NOT NULL, PRIMARY KEY (session, place));
CREATE TABLE IF NOT EXISTS forge_fact (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, space text NOT NULL,
    text text NOT NULL, at double precision NOT NULL, words text[] NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS forge_fact_text ON forge_fact (space, md5(text));
CREATE INDEX IF NOT EXISTS forge_fact_words ON forge_fact USING gin (words);
INSERT INTO forge_memory SELECT 1 WHERE NOT EXISTS (SELECT FROM forge_memory);
"""


class PostgresStore:
    """A SessionStore and a FactStore in a database, given as `postgresql://host/name`.

    Its tables begin with `forge_` and are created on first use. Each operation is one transaction on a new connection;
    put a pooler such as PgBouncer in front of the server if there are many.
    """

    @checked_options
    def __init__(self, conninfo: str) -> None:
        try:
            known = conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError:
            problem = "the connection string of PostgresStore is invalid; write postgresql://USER@HOST:PORT/DATABASE"
            raise DefinitionError((problem,)) from None  # never show it: it may hold a password
        self._conninfo = conninfo
        self._place = f"{known.get('dbname') or 'default'} on {known.get('host') or 'localhost'}"
        self._known = False

    def __repr__(self) -> str:
        return f"PostgresStore({self._place!r})"

    async def load(self, name: str) -> SavedSession | None:
        """The session; None if there is none with this name. StoreError for one that cannot be read."""
        async with self._database() as db:
            row = await (await db.execute(_LOAD, (name,))).fetchone()
        match row:
            case (int(revision), bytes(rest), list(messages)):
                try:
                    state = load_parts(SavedParts(rest=rest, messages=tuple(messages)))
                except ValueError as error:
                    problem = f"the session {name!r} in the database {self._place} cannot be read: {error}"
                    raise StoreError(problem) from None
                return SavedSession(state=state, revision=revision)
            case _:
                return None

    async def save(self, name: str, state: State, *, after: int) -> int:
        """Save the session and return its new revision. SessionChangedError unless its revision is `after`."""
        parts, history = save_parts(state), state.history
        values = (title(history), len(history), time.time(), parts.rest, name)
        async with self._database() as db:
            if after:
                saved = await db.execute(_UPDATE, (*values, after))
            else:
                saved = await db.execute(_INSERT, values)
            if (row := await saved.fetchone()) is None:
                found = await (await db.execute(_REVISION, (name,))).fetchone()
                raise SessionChangedError(name, after, _int(found))
            await _write(db, name, parts.messages)
        return _int(row)

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions, last saved first."""
        async with self._database() as db, db.cursor(row_factory=class_row(SessionSummary)) as cursor:
            return tuple(await (await cursor.execute(_LIST)).fetchall())

    async def delete(self, name: str) -> bool:
        """Delete the session; False if there was none with this name."""
        async with self._database() as db:
            gone = await db.execute("DELETE FROM forge_session WHERE name = %s", (name,))
            return bool(gone.rowcount)

    async def remember(self, space: str, text: str) -> Fact:
        """Store the fact, or return the existing one with the same text."""
        async with self._database() as db:
            await db.execute(_REMEMBER, (space, text, time.time(), words_of(text)))
            return (await _facts(db, _SAME, space, text))[0]

    async def recall(self, space: str, query: str, *, limit: int) -> tuple[Fact, ...]:
        """Up to `limit` facts of the space that share a word with the query, the most relevant first."""
        words = query_words(query)
        async with self._database() as db:
            total = await (await db.execute(_COUNT, (space,))).fetchone()
            found = await (_facts(db, _SHARING, space, words) if words else _facts(db, _NEWEST, space, limit))
        return ranked(found, query, _int(total), limit)

    async def forget(self, space: str, fact: int) -> bool:
        """Delete the fact with this id; False if the space has none."""
        async with self._database() as db:
            gone = await db.execute("DELETE FROM forge_fact WHERE space = %s AND id = %s", (space, fact))
            return bool(gone.rowcount)

    @asynccontextmanager
    async def _database(self) -> AsyncIterator[_Database]:
        """A connection with one transaction; database errors become a StoreError."""
        try:
            async with await psycopg.AsyncConnection.connect(self._conninfo) as db:
                if not self._known:
                    await self._prepare(db)
                yield db
        except psycopg.Error as error:
            said = str(error).strip() or type(error).__name__
            raise StoreError(f"the memory in the Postgres database {self._place} cannot be used: {said}") from error

    async def _prepare(self, db: _Database) -> None:
        # Only one of several processes creates the tables.
        await db.execute("SELECT pg_advisory_xact_lock(hashtext('forge_memory'))")
        await db.execute(_TABLES)
        number = _int(await (await db.execute("SELECT format FROM forge_memory")).fetchone())
        if number > _FORMAT:
            raise StoreError(
                f"the memory in the Postgres database {self._place} has format {number}, and this forge reads formats "
                f"up to {_FORMAT}: it was written by a newer one; upgrade forge-toolcalls, or choose another database"
            )
        await db.commit()
        self._known = True


_LOAD = """
    SELECT revision, rest, ARRAY(SELECT body FROM forge_message WHERE session = name ORDER BY place)
    FROM forge_session WHERE name = %s
"""
_REVISION = "SELECT revision FROM forge_session WHERE name = %s"
_UPDATE = """
    UPDATE forge_session SET revision = nextval('forge_revision'), title = %s, messages = %s, saved = %s, rest = %s
    WHERE name = %s AND revision = %s RETURNING revision
"""
_INSERT = """
    INSERT INTO forge_session (revision, title, messages, saved, rest, name)
    VALUES (nextval('forge_revision'), %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING revision
"""
_LIST = "SELECT name, title, messages, saved FROM forge_session ORDER BY revision DESC"
_BODIES = "SELECT body FROM forge_message WHERE session = %s ORDER BY place"
_REMEMBER = "INSERT INTO forge_fact (space, text, at, words) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
_SAME = "SELECT id, text, at FROM forge_fact WHERE space = %s AND md5(text) = md5(%s)"
_COUNT = "SELECT count(*) FROM forge_fact WHERE space = %s"
_SHARING = "SELECT id, text, at FROM forge_fact WHERE space = %s AND words && %s::text[]"
_NEWEST = "SELECT id, text, at FROM forge_fact WHERE space = %s ORDER BY id DESC LIMIT %s"


async def _write(db: _Database, session: str, messages: tuple[bytes, ...]) -> None:
    """Replace the session's messages by these."""
    kept = unchanged([row[0] for row in await (await db.execute(_BODIES, (session,))).fetchall()], messages)
    await db.execute("DELETE FROM forge_message WHERE session = %s AND place >= %s", (session, kept))
    added = [(session, place, messages[place]) for place in range(kept, len(messages))]
    async with db.cursor() as cursor:
        await cursor.executemany("INSERT INTO forge_message (session, place, body) VALUES (%s, %s, %s)", added)


def _int(row: tuple[object, ...] | None) -> int:
    """The number in a row with one column; 0 for no row."""
    return row[0] if row and isinstance(row[0], int) else 0


async def _facts(db: _Database, query: LiteralString, space: str, about: str | int | list[str]) -> list[Fact]:
    async with db.cursor(row_factory=class_row(Fact)) as cursor:
        found: list[Fact] = await (await cursor.execute(query, (space, about))).fetchall()
        return found
