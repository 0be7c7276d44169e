"""The database of durable runs: DBOS tables in SQLite or PostgreSQL, value encoding, and queries.

All access to a SQLite file goes through one engine per process: closing any other descriptor of the file would drop the
process's locks on it.
"""

import logging
import math
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from dbos import DBOS, DBOSClient, EnqueueOptions, Serializer
from dbos._migration import get_migration_versions, get_sqlite_migration_versions
from msgspec import Struct

from forge.errors import ForgeError
from stages.decoding import sound

APPLICATION = "forge"
STEPS_VERSION = "forge-3"
"""The version of the order of steps per effect, and of the states. Workers leave runs of other versions alone."""

WORKFLOW = "forge.run"

ANSWERS = "answer"
"""The topic of answers."""

ANSWERED = "ANSWERED"
"""The status of a delayed segment that has been answered, in addition to those of DBOS."""

_TEXT, _FAULT = "=", "!"
"""Prefixes of a stored text (JSON written by forge) and of a stored exception."""


class StoredJson(Serializer):
    """DBOS serializer: text as it is, so that JSON in it is not quoted again; other values as JSON."""

    def name(self) -> str:
        """The serializer's name in rows."""
        return "forge_json"

    def serialize(self, data: object) -> str:
        """The value as text."""
        match data:
            case str():
                return _TEXT + data
            case BaseException():
                return _FAULT + storable(f"{type(data).__name__}: {data}")
            case _:
                return msgspec.json.encode(data).decode()

    def deserialize(self, serialized_data: str) -> object:
        """The value; for an exception, a ForgeError with its message."""
        kind, rest = serialized_data[:1], serialized_data[1:]
        if kind == _TEXT:
            return rest
        return ForgeError(rest) if kind == _FAULT else msgspec.json.decode(serialized_data)


def storable(text: str) -> str:
    """The text with U+FFFD for each character that a database refuses: NUL, and half of a surrogate pair."""
    return sound(text).replace("\0", "\ufffd")


def text_of(stored: str | None) -> str:
    """A stored text or exception, without its prefix."""
    return (stored or "")[1:]


class SegmentRow(Struct, frozen=True, kw_only=True):
    """One segment of a run, as DBOS knows it. Times are seconds since 1970; `until`: when its delay ends."""

    id: str
    status: str
    created: float
    updated: float
    attributes: Mapping[str, object]
    version: str = STEPS_VERSION
    owner: str = ""
    until: float | None = None
    output: str | None
    error: str | None


class StepRow(Struct, frozen=True, kw_only=True):
    """One recorded step of a segment; `ended` in seconds since 1970."""

    number: int
    name: str
    output: str | None
    ended: float | None = None


_UNPRINTED = logging.NullHandler()


class Database:
    """An open database: its engine, a DBOS client on it, and queries that DBOS lacks."""

    def __init__(self, where: str | Path, *, create: bool = True) -> None:
        self.url = _url_of(where)
        self.sqlite = self.url.startswith("sqlite")
        if self.sqlite:
            _find_file(self.url, create=create)
        self._leaving = math.inf
        self.engine = self._sqlite() if self.sqlite else _postgres(self.url)
        # What DBOS warns of is told by forge, in its own words; without any handler, Python would print it, too.
        logging.getLogger("dbos").addHandler(_UNPRINTED)
        try:
            self._refuse_newer()
            if not self.sqlite:
                DBOS.migrate(self.url)
            self.client = DBOSClient(
                system_database_engine=self.engine,
                system_database_url=self.url,
                serializer=StoredJson(),
                application_name=APPLICATION,
                lazy=True,
            )
            if self.sqlite:
                self.client._sys_db.run_migrations()  # noqa: SLF001 - `DBOS.migrate` would open the file a second time
            self._own_tables()
        except ForgeError:
            self.engine.dispose()
            raise
        except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
            self.engine.dispose()
            problem = str(error).partition("\n")[0]
            raise ForgeError(f"cannot open the database of runs {self.shown}: {problem}") from None
        own, dbos = partial(_table, None), partial(_table, None if self.sqlite else "dbos")
        self._runs = dbos(
            "workflow_status",
            "workflow_uuid status name created_at updated_at completed_at executor_id parent_workflow_id output error "
            "application_version authenticated_user queue_name delay_until_epoch_ms owner_xid started_at_epoch_ms "
            "recovery_attempts attributes",
        )
        self._outputs = dbos("workflow_output", "workflow_uuid output error")
        self._inputs = dbos("workflow_input", "workflow_uuid inputs")
        self._steps = dbos("operation_outputs", "workflow_uuid function_id function_name output completed_at_epoch_ms")
        self._sent = dbos("notifications", "destination_uuid topic")
        self._executors = own("forge_executors", "id beat")
        self._messages = own("forge_messages", "run number text")
        self._deleted = own("forge_deleted", "conversation times")

    @property
    def shown(self) -> str:
        """The file, or the address without its password."""
        url = sa.make_url(self.url)
        return (self.sqlite and url.database) or url.render_as_string(hide_password=True)

    def leave(self) -> None:
        """From now on, wait five seconds in all for a SQLite file that another program has locked."""
        self._leaving = time.monotonic() + _LEAVES

    def _read(self, query: sa.Select[Any]) -> Sequence[Sequence[Any]]:
        with self.engine.connect() as connection:
            return connection.execute(query).all()

    def close(self) -> None:
        """Close every connection."""
        self.client.destroy()
        self.engine.dispose()

    def _sqlite(self) -> sa.Engine:
        engine = sa.create_engine(self.url, hide_parameters=True)  # errors are logged, and must not quote a run
        # FULL survives a power cut; NORMAL, only a killed process.
        pragmas = (f"busy_timeout={_LOOK * 1000:.0f}", "foreign_keys=ON", "journal_mode=WAL", "synchronous=FULL")

        @sa.event.listens_for(engine, "connect")
        def _(connection: sqlite3.Connection, _record: object) -> None:
            connection.isolation_level = "IMMEDIATE"
            if sqlite3.sqlite_version_info < (3, 42):
                # On Python 3.12 and newer, DBOS has `unixepoch('subsec')` as a new row's time, which is NULL here.
                connection.create_function("unixepoch", 1, lambda _: time.time())
            for pragma in pragmas:
                self._patiently(partial(connection.execute, f"PRAGMA {pragma}"))

        @sa.event.listens_for(engine, "do_execute")
        def _(cursor: sqlite3.Cursor, statement: str, parameters: Sequence[object], _context: object) -> bool:
            self._patiently(partial(cursor.execute, statement, parameters))
            return True

        return engine

    def _patiently(self, execute: Callable[[], object]) -> None:
        """Execute it, again as long as another program has locked the file.

        Waits here and not within SQLite, where nothing ends a wait: a process ends only after its threads.
        """
        give_up = time.monotonic() + _LOCKED
        while True:
            try:
                execute()
            except sqlite3.OperationalError as error:
                locked = getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY)
                if not locked or time.monotonic() > give_up:
                    raise
                if time.monotonic() > self._leaving:  # in other words, as DBOS repeats forever what is locked
                    raise sqlite3.OperationalError("another program has locked the file") from None
            else:
                return

    # Runs

    def segments(self, ids: Sequence[str], *, outputs: bool = True) -> dict[str, SegmentRow]:
        """The segments that exist, by id."""
        return {row.id: row for row in self._rows(self._runs.c.workflow_uuid.in_(list(ids)), outputs=outputs)}

    def first_segments(
        self,
        before: tuple[float, str] | None,
        most: int | None,
        *,
        owner: str | None = None,
        queue: str | None = None,
        conversation: str | None = None,
        ended: Collection[str] = (),
        statuses: Collection[str] = (),
    ) -> list[SegmentRow]:
        """The first segments of runs begun before that time and id, newest first.

        Filtered by owner, queue and conversation, and by how runs ended or the status of a segment, if given.
        """
        runs = self._runs
        begun = sa.and_(runs.c.name == WORKFLOW, runs.c.parent_workflow_id.is_(None))
        if owner is not None:
            begun = sa.and_(begun, sa.func.coalesce(runs.c.authenticated_user, "") == owner)
        if queue is not None:
            begun = sa.and_(begun, runs.c.queue_name == queue)
        if conversation is not None:
            begun = sa.and_(begun, self._attribute("conversation") == conversation)
        by_state: list[sa.ColumnElement[bool]] = [self._attribute("ended").in_([*ended])] if ended else []
        by_state += [self._has_segment(statuses)] if statuses else []
        if by_state:
            begun = sa.and_(begun, sa.or_(*by_state))
        if before is not None:
            place = sa.tuple_(round(before[0] * 1000), before[1])
            begun = sa.and_(begun, sa.tuple_(runs.c.created_at, runs.c.workflow_uuid) < place)
        return self._rows(begun, most=most, outputs=False)

    def _attribute(self, name: str) -> sa.ColumnElement[str]:
        """SQL for a run's attribute, matching the indexes of `_own_tables`."""
        return sa.literal_column(_attribute(name, sqlite=self.sqlite), sa.Text())

    def _has_segment(self, statuses: Collection[str]) -> sa.ColumnElement[bool]:
        """Whether a segment of the run has one of the statuses."""
        runs, other = self._runs, self._runs.alias()
        one, colon = other.c.workflow_uuid, sa.literal_column("':'", sa.Text())
        run = (
            sa.func.substr(one, 1, sa.func.instr(one, colon) - 1) if self.sqlite else sa.func.split_part(one, colon, 1)
        )
        has: sa.ColumnElement[bool] = other.c.status.in_([*statuses])
        if ANSWERED in statuses:
            sent = sa.select(self._sent.c.destination_uuid).where(self._sent.c.topic == ANSWERS)
            has = sa.or_(has, sa.and_(other.c.status == "DELAYED", one.in_(sent)))
        having = sa.select(run + sa.literal_column("':0'", sa.Text())).where(has, other.c.name == WORKFLOW)
        return runs.c.workflow_uuid.in_(having)

    def _rows(self, where: sa.ColumnElement[bool], most: int | None = None, *, outputs: bool) -> list[SegmentRow]:
        runs, made = self._runs, self._outputs
        columns = (
            *(runs.c.workflow_uuid, runs.c.status, runs.c.created_at),
            # When it ended: attributes set later, such as the following run, do not count as updates.
            *(sa.func.coalesce(runs.c.completed_at, runs.c.updated_at), runs.c.attributes),
            *(runs.c.authenticated_user, runs.c.delay_until_epoch_ms, runs.c.application_version),
        )
        if outputs:
            output = sa.func.coalesce(made.c.output, runs.c.output), sa.func.coalesce(made.c.error, runs.c.error)
            query = sa.select(*columns, *output).select_from(
                runs.outerjoin(made, made.c.workflow_uuid == runs.c.workflow_uuid)
            )
        else:
            query = sa.select(*columns, sa.null(), sa.null())
        ordered = query.where(where).order_by(runs.c.created_at.desc(), runs.c.workflow_uuid.desc()).limit(most)
        return [
            SegmentRow(
                id=row[0],
                status=row[1],
                created=row[2] / 1000,
                updated=row[3] / 1000,
                attributes=row[4] if isinstance(row[4], dict) else {},
                owner=row[5] or "",
                until=row[6] and row[6] / 1000,
                version=row[7] or STEPS_VERSION,
                output=row[8],
                error=row[9],
            )
            for row in self._read(ordered)
        ]

    def input_of(self, segment: str) -> str:
        """The text that the segment was enqueued with; empty if there is no such segment."""
        found = self._read(sa.select(self._inputs.c.inputs).where(self._inputs.c.workflow_uuid == segment))
        return msgspec.json.decode(found[0][0], type=_Arguments).args[0] if found else ""

    def steps(self, segment: str, after: int = -1) -> list[StepRow]:
        """The recorded steps of the segment after that number, in order."""
        steps = self._steps
        query = (
            sa.select(steps.c.function_id, steps.c.function_name, steps.c.output, steps.c.completed_at_epoch_ms)
            .where(steps.c.workflow_uuid == segment, steps.c.function_id > after)
            .order_by(steps.c.function_id)
        )
        return [
            StepRow(number=row[0], name=row[1], output=row[2], ended=row[3] and row[3] / 1000)
            for row in self._read(query)
        ]

    def heads(self, segments: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Each segment's status, and the number of its last recorded step (-1: none)."""
        runs, steps = self._runs, self._steps
        last = sa.select(sa.func.max(steps.c.function_id)).where(steps.c.workflow_uuid == runs.c.workflow_uuid)
        found = sa.select(runs.c.workflow_uuid, runs.c.status, sa.func.coalesce(last.scalar_subquery(), -1))
        rows = self._read(found.where(runs.c.workflow_uuid.in_(list(segments))))
        return {row[0]: (row[1], row[2]) for row in rows}

    def move(self, segment: str) -> None:
        """Set a queued or waiting segment to this version."""
        runs = self._runs
        waits = sa.and_(runs.c.workflow_uuid == segment, runs.c.status.in_(("ENQUEUED", "DELAYED")))
        with self.engine.begin() as connection:
            connection.execute(sa.update(runs).where(waits).values(application_version=STEPS_VERSION))

    def enqueue(self, options: EnqueueOptions, text: str) -> None:
        """Enqueue a segment. Unlike DBOS's own method, this does not wait for a database that is away."""
        with self.engine.begin() as connection:
            self.client.enqueue_in_transaction(connection, options, text)

    def enqueue_after(
        self, ended: SegmentRow, options: EnqueueOptions, text: str, *, retried: str = "", unless: str = ""
    ) -> bool:
        """Enqueue a segment, unless the run of the `ended` one has gone on since, or the segment `unless` exists.

        `retried`: the new output of the `ended` one, if the segment is the next of the same run. Returns whether it is
        enqueued. All in one transaction, which locks that output: of several retries and following messages at the same
        time, one succeeds.
        """
        made, runs, segment = self._outputs, self._runs, options.get("workflow_id")
        same = sa.and_(made.c.workflow_uuid == ended.id, made.c.output == ended.output)
        output = _TEXT + retried if retried else ended.output
        with self.engine.connect() as connection:
            if not connection.execute(sa.update(made).where(same).values(output=output)).rowcount:
                return False
            if connection.execute(sa.select(runs.c.workflow_uuid).where(runs.c.workflow_uuid == unless)).first():
                return False
            self.client.enqueue_in_transaction(connection, options, text)
            if retried:  # only the first segment of a run has no parent
                child = sa.update(runs).where(runs.c.workflow_uuid == segment)
                connection.execute(child.values(parent_workflow_id=ended.id))
                self._uncancel(connection, ended.id)
            connection.commit()
            return True

    def resume(self, row: SegmentRow, queue: str, *, uncancel: bool) -> bool:
        """Enqueue a segment again, to go on after its last step; False if its status has changed since.

        One transaction: of several retries one succeeds, and only that one removes the mark for cancellation.
        """
        runs, made = self._runs, self._outputs
        same = sa.and_(runs.c.workflow_uuid == row.id, runs.c.status == row.status)
        queued: dict[str, object] = {
            "status": "ENQUEUED",
            "queue_name": queue,
            "application_version": STEPS_VERSION,
            "recovery_attempts": 0,
            "updated_at": round(time.time() * 1000),
        }
        none = dict.fromkeys(("owner_xid", "started_at_epoch_ms", "completed_at", "output", "error"))
        with self.engine.begin() as connection:
            if not connection.execute(sa.update(runs).where(same).values(queued | none)).rowcount:
                return False
            connection.execute(sa.delete(made).where(made.c.workflow_uuid == row.id))
            if uncancel:
                self._uncancel(connection, row.id)
            return True

    def _uncancel(self, connection: sa.Connection, segment: str) -> None:
        """Remove the mark for cancellation of the segment's run: whoever retries it wants it to go on."""
        first = self._runs.c.workflow_uuid == f"{segment.partition(':')[0]}:0"
        unmarked = "json_remove(attributes, '$.cancel')" if self.sqlite else "attributes - 'cancel'"
        connection.execute(sa.update(self._runs).where(first).values(attributes=sa.literal_column(unmarked)))

    def answered(self, segments: Sequence[str]) -> set[str]:
        """The waiting segments that have been answered but not resumed yet."""
        sent = self._sent
        query = sa.select(sent.c.destination_uuid).where(
            sent.c.destination_uuid.in_(list(segments)), sent.c.topic == ANSWERS
        )
        return {row[0] for row in self._read(query)}

    def cancelled(self, firsts: Sequence[str]) -> set[str]:
        """The first segments whose runs are marked for cancellation."""
        found = self.segments(firsts, outputs=False)
        return {one for one, row in found.items() if row.attributes.get("cancel") is True}

    def waiting(self) -> dict[str, int]:
        """The number of queued and delayed segments, by DBOS status."""
        runs = self._runs
        query = (
            sa.select(runs.c.status, sa.func.count())
            .where(runs.c.status.in_(["ENQUEUED", "DELAYED"]), runs.c.name == WORKFLOW)
            .group_by(runs.c.status)
        )
        return {row[0]: row[1] for row in self._read(query)}

    # Conversations whose first run was deleted

    def deletions(self, conversation: str) -> int:
        """How often the conversation with this digest was deleted."""
        known = self._deleted
        found = self._read(sa.select(known.c.times).where(known.c.conversation == conversation))
        return found[0][0] if found else 0

    def note_deletion(self, conversation: str) -> None:
        """Count a deletion of the conversation with this digest."""
        known = self._deleted
        # If another process has just counted the same one, that is enough.
        with suppress(sa.exc.IntegrityError), self.engine.begin() as connection:
            noted = sa.update(known).where(known.c.conversation == conversation).values(times=known.c.times + 1)
            if not connection.execute(noted).rowcount:
                connection.execute(sa.insert(known).values(conversation=conversation, times=1))

    # Messages to runs in progress

    def say(self, run: str, text: str) -> int:
        """Store a message to the run. Returns its number, from 1."""
        kept = self._messages
        while True:
            try:
                with self.engine.begin() as connection:
                    last = connection.execute(sa.select(sa.func.max(kept.c.number)).where(kept.c.run == run)).scalar()
                    number = int(last or 0) + 1
                    connection.execute(sa.insert(kept).values(run=run, number=number, text=text))
                    return number
            except sa.exc.IntegrityError:
                continue  # another process has just taken that number

    def said(self, run: str, after: int) -> list[str]:
        """The messages to the run after that number, in order."""
        kept = self._messages
        query = sa.select(kept.c.text).where(kept.c.run == run, kept.c.number > after).order_by(kept.c.number)
        return [row[0] for row in self._read(query)]

    def unsay(self, runs: Sequence[str]) -> None:
        """Delete the messages to those runs."""
        with self.engine.begin() as connection:
            connection.execute(sa.delete(self._messages).where(self._messages.c.run.in_(list(runs))))

    # Executors: the processes that perform runs

    def _refuse_newer(self) -> None:
        """Raise ForgeError if a newer DBOS has changed the tables."""
        if self.sqlite:
            found, known = get_sqlite_migration_versions(self.engine)
        else:
            try:
                found, known = get_migration_versions(self.engine, "dbos", use_listen_notify=True)
            except sa.exc.OperationalError:
                return  # no database yet; if it cannot be reached, the migration reports why
        if found > known:
            raise ForgeError(
                f"the database of runs {self.shown} was created by a newer version of forge (its tables have "
                f"version {found}; this one knows {known}); update forge, or use another database"
            )

    def _own_tables(self) -> None:
        """Create tables and indexes that DBOS lacks. A lock serializes processes that open a new database."""
        with self.engine.begin() as connection:
            if not self.sqlite:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1718579813)")
            for table in (
                "forge_executors (id TEXT PRIMARY KEY, beat BIGINT NOT NULL)",
                "forge_messages (run TEXT, number BIGINT, text TEXT NOT NULL, PRIMARY KEY (run, number))",
                "forge_deleted (conversation TEXT PRIMARY KEY, times BIGINT NOT NULL)",
            ):
                connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {table}")
            for name in ("conversation", "ended"):
                index = f"forge_{name}"
                # Skip an existing index: on PostgreSQL, even IF NOT EXISTS waits for all writers.
                if not self.sqlite and connection.exec_driver_sql(f"SELECT to_regclass('dbos.{index}')").scalar():
                    continue
                table = "workflow_status" if self.sqlite else "dbos.workflow_status"
                columns = f"({_attribute(name, sqlite=self.sqlite)}), created_at"
                connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {index} ON {table} ({columns})")
            if self.sqlite:
                connection.exec_driver_sql(_MILLISECONDS)

    def beat(self, executor: str) -> None:
        """Increment the executor's counter, creating it if needed."""
        known = self._executors
        with self.engine.begin() as connection:
            raised = connection.execute(sa.update(known).where(known.c.id == executor).values(beat=known.c.beat + 1))
            if not raised.rowcount:
                connection.execute(sa.insert(known).values(id=executor, beat=0))

    def beats(self) -> dict[str, int]:
        """The counters of all executors; -1 for one that left with unfinished runs."""
        runs = self._runs
        owners = sa.select(runs.c.executor_id).distinct().where(runs.c.status == "PENDING", runs.c.name == WORKFLOW)
        # The counters last, so that an executor that has just begun has one.
        owning = {row[0]: -1 for row in self._read(owners) if row[0]}
        return owning | {row[0]: row[1] for row in self._read(sa.select(self._executors))}

    def pending(self, executor: str) -> dict[str, str]:
        """The executor's unfinished segments and their queues."""
        runs = self._runs
        taken = sa.and_(runs.c.executor_id == executor, runs.c.status == "PENDING", runs.c.name == WORKFLOW)
        return {row[0]: row[1] for row in self._read(sa.select(runs.c.workflow_uuid, runs.c.queue_name).where(taken))}

    def forget(self, executor: str) -> None:
        """Remove the executor's counter."""
        known = self._executors
        with self.engine.begin() as connection:
            connection.execute(sa.delete(known).where(known.c.id == executor))


_MILLISECONDS = """
CREATE TRIGGER IF NOT EXISTS forge_created AFTER INSERT ON workflow_status BEGIN
    UPDATE workflow_status SET created_at = strftime('%s') * 1000 + substr(strftime('%f'), 4) WHERE rowid = NEW.rowid;
END
"""
"""DBOS gives SQLite whole seconds before Python 3.12, and fractions of milliseconds since: neither orders runs."""


_LOCKED, _LEAVES, _LOOK = 30.0, 5.0, 0.2
"""Seconds to wait for a locked SQLite file: for each statement; in all once the process is ending; at a time."""


def _table(schema: str | None, name: str, columns: str) -> sa.TableClause:
    types = {"attributes": sa.JSON()}
    return sa.table(name, *(sa.column(column, types.get(column)) for column in columns.split()), schema=schema)


class _Arguments(Struct):
    args: tuple[str, ...]


def _url_of(where: str | Path) -> str:
    """The database's URL, also for a file's path. ForgeError for an unsupported kind of database."""
    text = str(where)
    scheme, separator, _ = text.partition("://")
    if not separator:
        return f"sqlite:///{Path(text).absolute()}"
    if scheme not in {"sqlite", "postgresql", "postgres"}:
        raise ForgeError(f"unsupported database {scheme}://; use a file, for SQLite, or postgresql://…")
    return text.replace("postgres://", "postgresql://", 1)


def _attribute(name: str, *, sqlite: bool) -> str:
    return f"json_extract(attributes, '$.{name}')" if sqlite else f"attributes ->> '{name}'"


def _find_file(url: str, *, create: bool) -> None:
    """Create the file unless it exists, accessible only to its owner: it holds what users and tools said."""
    path = Path(sa.make_url(url).database or ":memory:")
    if str(path) == ":memory:":
        return
    try:
        if path.is_file():
            return
        if path.is_dir():
            raise ForgeError(f"{path} is a folder; name a file in it for the database, such as {path / 'runs.db'}")
        if path.exists():  # SQLite would wait for ever for /dev/null
            raise ForgeError(f"{path} is not an ordinary file; name one for the database")
        if not create:
            raise ForgeError(f"there is no database of runs {path}; forge runs start creates one")
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT, 0o600))
    except OSError as error:
        raise ForgeError(f"cannot create the database of runs {path}: {error.strerror}") from None


def _postgres(url: str) -> sa.Engine:
    driver = sa.make_url(url).set(drivername="postgresql+psycopg")
    return sa.create_engine(driver, pool_size=20, max_overflow=0, pool_pre_ping=True, hide_parameters=True)
