"""A worker: a process that performs durable runs, and takes over those of workers that died.

DBOS is one object a process, so there is one worker a process.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

from dbos import DBOS
from msgspec import Struct
from sqlalchemy.exc import DBAPIError

from forge.agent.agent import Agent
from forge.backends import reached
from forge.callbacks import OnChunk
from forge.connection import AnyBackend, Connection
from forge.durable.database import APPLICATION, VERSION, WORKFLOW, Database, StoredJson
from forge.durable.records import SEGMENT, RunEnd, how_ended, queue_of, segment_id, written
from forge.durable.runs import Runs, Served, workflow_of
from forge.durable.segment import Performing
from forge.errors import BackendError, DefinitionError, ForgeError
from forge.runtime.emitter import OnEvent
from forge.workflow.workflow import Workflow
from stages.effect import Replied, Send, Undelivered

_log = logging.getLogger("forge")

_POLL = 0.2
"""Seconds between looks for new runs, and for cancellations of those under way."""


class Rhythm(Struct, frozen=True, kw_only=True):
    """How workers know of one another's death, in seconds.

    Each counts up every `heartbeat`; one that has not counted for `dead_after`, by the clock of who looks on, is dead,
    and its runs are taken over. One that was only slow is refused when it records its next step.
    """

    heartbeat: float = 2.0
    dead_after: float = 15.0


@asynccontextmanager
async def worker(
    workflows: Served | Sequence[Served],
    *,
    database: str | Path,
    backend: AnyBackend | None = None,
    concurrency: int = 16,
    per_minute: int | None = None,
    slots: int | None = None,
    answer_within: float = 7 * 86400.0,
    drain: float = 10.0,
    rhythm: Rhythm = Rhythm(),  # noqa: B008 - frozen
    on_event: OnEvent | None = None,
) -> AsyncIterator[Runs]:
    """Perform runs of these workflows and agents while the context is open; it yields what starts and answers them.

    `database` is a file, for SQLite, or `postgresql://…`. `backend` is what all of them run on; None: each agent on its
    own. At most `concurrency` runs are under way, and at most
    `slots` model calls; at most `per_minute` runs of a workflow are begun a minute, by all workers together. A person
    has `answer_within` seconds to answer a question. At the end, runs have `drain` seconds to end; those that have not
    go on in the next worker. `on_event` is told of what happens in the runs under way here, with the deltas of replies
    as they are written; after a recovery it is told again. ForgeError for a database that cannot be opened.
    """
    served = all_of(workflows)
    bounds = {"concurrency": concurrency, "slots": slots, "per_minute": per_minute}
    _refuse_wrong(served, backend, bounds, answer_within=answer_within, rhythm=rhythm)
    if _open:
        raise ForgeError("this process has a worker of durable runs already, and can have one; give that all workflows")
    opened = await asyncio.to_thread(Database, database)
    _open.append(opened)
    try:
        working = _Worker(served, opened, backend, slots, on_event)
        async with working.launched(concurrency, per_minute, rhythm, drain):
            yield Runs(opened, within=answer_within)
    finally:
        _open.remove(opened)
        await asyncio.to_thread(opened.close)


_open: list[Database] = []
"""The database of this process's worker, while there is one."""


def all_of(workflows: Served | Sequence[Served]) -> tuple[Served, ...]:
    """What is served, one or several."""
    return (workflows,) if isinstance(workflows, Workflow | Agent) else tuple(workflows)


def _refuse_wrong(
    served: Sequence[Served],
    backend: AnyBackend | None,
    bounds: Mapping[str, int | None],
    *,
    answer_within: float,
    rhythm: Rhythm,
) -> None:
    names = [workflow_of(one).name for one in served]
    twice = sorted({name for name in names if names.count(name) > 1})
    lonely = sorted(one.name for one in served if isinstance(one, Workflow)) if backend is None else []
    keepers = sorted(one.workflow.name for one in served if isinstance(one, Agent) and one.memory is not None)
    fallen = sorted(one.workflow.name for one in served if isinstance(one, Agent) and one.fallbacks)
    found = (
        (not served, "a worker needs a workflow or an agent; it was given none"),
        (twice, f"several workflows are named {', '.join(twice)}: runs name theirs, so each needs a name of its own"),
        (lonely, f"{', '.join(lonely)}: a workflow does not say what it runs on; give the worker a backend"),
        (keepers, f"{', '.join(keepers)}: conversations are kept with their runs; leave the agent's memory out"),
        (
            fallen,
            f"{', '.join(fallen)}: durable runs use no fallbacks; leave them out, or put a backend in their place",
        ),
        *((most is not None and most < 1, f"{name} is {most}; it must be at least 1") for name, most in bounds.items()),
        (answer_within <= 0, f"answer_within is {answer_within:g}; it must be more than 0 seconds"),
        (rhythm.heartbeat <= 0, f"rhythm.heartbeat is {rhythm.heartbeat:g}; it must be more than 0 seconds"),
        (
            rhythm.dead_after < 3 * rhythm.heartbeat,
            f"rhythm.dead_after is {rhythm.dead_after:g}; it must be at least three heartbeats ({rhythm.heartbeat:g})",
        ),
    )
    if wrong := tuple(sentence for is_wrong, sentence in found if is_wrong):
        raise DefinitionError(wrong)
    for one in served:
        workflow_of(one).compiled  # noqa: B018 - a wrong definition is told before a run fails of it


class _Worker:
    """The host of the segments that this process performs."""

    def __init__(
        self,
        served: Sequence[Served],
        database: Database,
        backend: AnyBackend | None,
        slots: int | None,
        on_event: OnEvent | None,
    ) -> None:
        self.on_event = on_event
        self._served: Mapping[str, Workflow] = {workflow_of(one).name: workflow_of(one) for one in served}
        own = {one.workflow.name: one.backend for one in served if isinstance(one, Agent)}
        self._backends: Mapping[str, AnyBackend] = own if backend is None else dict.fromkeys(self._served, backend)
        self._database = database
        self._slots = asyncio.Semaphore(slots) if slots else None
        self._connections = AsyncExitStack()
        self._connected: dict[int, Connection] = {}
        self._connecting = asyncio.Lock()
        self._live: dict[str, asyncio.Event] = {}
        self._segments: set[str] = set()
        self._abandoned: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._leaving = False
        self._id = uuid4().hex

    @asynccontextmanager
    async def launched(
        self, concurrency: int, per_minute: int | None, rhythm: Rhythm, drain: float
    ) -> AsyncIterator[None]:
        """Runs are performed while it is open."""
        database = self._database
        await asyncio.to_thread(database.beat, self._id)
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": database.url,
                "system_database_engine": database.engine,
                "serializer": StoredJson(),
                "application_version": VERSION,
                "executor_id": self._id,
                "max_executor_threads": 16,
                "notification_listener_polling_interval_sec": _POLL,
                "log_level": "CRITICAL",
            }
        )

        async def forge_run(text: str) -> str:
            return await self._perform(text, again)

        # A run that its machines' deaths interrupt is worth going on with however often that happens.
        again = DBOS.workflow(name=WORKFLOW, max_recovery_attempts=10_000)(forge_run)
        DBOS.listen_queues([queue_of(name) for name in self._served])
        background: list[asyncio.Task[None]] = []
        try:
            DBOS.launch()  # here, so that runs are performed on this loop
            for name in self._served:
                await DBOS.register_queue_async(
                    queue_of(name),
                    worker_concurrency=concurrency,
                    limiter=None if per_minute is None else {"limit": per_minute, "period": 60.0},
                    polling_interval_sec=_POLL,
                    on_conflict="always_update",
                )
            background = [asyncio.create_task(self._watch()), asyncio.create_task(self._sweep(rhythm))]
            yield
        finally:
            await self._drained(drain)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
            _silence()
            # DBOS has put its own threads in the place of the loop's, and closed them.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            await self._connections.aclose()
            # Whatever is left of its runs is taken over at once: they have an executor without a counter.
            await asyncio.to_thread(database.forget, self._id)

    async def _drained(self, seconds: float) -> None:
        """Wait for runs under way; those that take longer are left as if the process had died: nothing is recorded."""
        self._leaving = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _perform(self, text: str, again: Callable[[str], Coroutine[object, object, str]]) -> str:
        """One segment."""
        segment = SEGMENT.decode(text)
        if self._leaving:
            await asyncio.Event().wait()  # it was taken from the queue while this process ends, and goes on elsewhere
        first, own = segment_id(segment.run, 0), segment_id(segment.run, segment.number)
        cancel = asyncio.Event()
        task = asyncio.current_task()
        self._live[first] = cancel
        self._segments.add(own)
        try:
            if task is not None:
                self._tasks.add(task)
            if await asyncio.to_thread(self._database.cancelled, [first]):
                cancel.set()
            doing = Performing(self, self._served[segment.workflow], segment, cancel)
            end = await doing.run(again)
            if isinstance(end, RunEnd):  # before it has, so that none that has ended is missed in a list
                ended = {"ended": how_ended(end.halt)}
                await self._database.client.update_workflow_attributes_async(first, ended, merge=True)
            return written(end)
        except DBAPIError as error:
            # A full disk, say. That does not end the run: the sweeper enqueues the segment again once it can.
            _log.warning("the run %s cannot be recorded: %s", segment.run, str(error).partition("\n")[0])
            self._segments.discard(own)
            await self._abandoned.setdefault(own, asyncio.Event()).wait()
            raise
        finally:
            self._segments.discard(own)
            self._live.pop(first, None)
            if task is not None:
                self._tasks.discard(task)

    async def connection(self, workflow: str) -> Connection:
        """The workflow's model, connected to when it is first needed."""
        backend = self._backends[workflow]
        async with self._connecting:
            if id(backend) not in self._connected:
                opened = await self._connections.enter_async_context(reached(backend).connect())
                self._connected[id(backend)] = opened
            return self._connected[id(backend)]

    async def send(self, workflow: str, effect: Send, on_chunk: OnChunk | None) -> Replied | Undelivered:
        """Ask it, when a slot is free."""
        try:
            connection = await self.connection(workflow)
        except BackendError as error:
            return Undelivered(fault=error.fault)
        send = connection.told(on_chunk)
        if self._slots is None:
            return await send(effect)
        async with self._slots:
            return await send(effect)

    async def said(self, run: str, after: int) -> Sequence[str]:
        """What users have said to the run. Asked until the database answers: a fault would be the step's outcome."""
        while True:
            try:
                return await asyncio.to_thread(self._database.said, run, after)
            except DBAPIError:
                await asyncio.sleep(_POLL)

    async def continued(self, first: str, following: str, number: int) -> None:
        """Note the run's last segment; wake it if the run is to be cancelled, for it may wait for a person."""
        client = self._database.client
        await client.update_workflow_attributes_async(first, {"segment": number}, merge=True)
        if await asyncio.to_thread(self._database.cancelled, [first]):
            await client.set_workflow_delay_async(following, delay_seconds=0)

    async def _watch(self) -> None:
        """Tell the runs under way that are to be cancelled."""
        while True:
            await asyncio.sleep(_POLL)
            if not self._live:
                continue
            with suppress(Exception):  # the database may be away for a while
                for first in await asyncio.to_thread(self._database.cancelled, list(self._live)):
                    if first in self._live:
                        self._live[first].set()

    async def _sweep(self, rhythm: Rhythm) -> None:
        """Count, and take over the runs of executors that have stopped counting, and those that this one has lost."""
        seen: dict[str, tuple[int, float]] = {}
        lost: dict[str, float] = {}
        while True:
            try:
                await asyncio.to_thread(self._database.beat, self._id)
                beats = await asyncio.to_thread(self._database.beats)
                now = time.monotonic()
                for executor, count in beats.items():
                    if executor != self._id and seen.get(executor, (None, 0.0))[0] != count:
                        seen[executor] = (count, now)
                    if count < 0 or (executor != self._id and now - seen[executor][1] >= rhythm.dead_after):
                        await asyncio.to_thread(self._take_over, executor)
                taken = await asyncio.to_thread(self._database.pending, self._id)
                lost = {one: lost.get(one, now) for one in taken if one not in self._segments}
                for one in [one for one, since in lost.items() if now - since >= rhythm.dead_after]:
                    await self._database.client.resume_workflow_async(one, queue_name=taken[one])
                    if (abandoned := self._abandoned.pop(one, None)) is not None:
                        abandoned.set()
            except Exception as error:  # noqa: BLE001 - it may be away for a while; nothing else ends this
                _log.warning("the database of runs cannot be asked: %s", str(error).partition("\n")[0])
            await asyncio.sleep(rhythm.heartbeat)

    def _take_over(self, executor: str) -> None:
        # Again at the next sweep if this fails in the middle: only then is the counter forgotten.
        DBOS._recover_pending_workflows([executor])  # noqa: SLF001 - the public way needs DBOS's own service
        self._database.forget(executor)


def _silence() -> None:
    """Take DBOS's handler off its logger: it holds on to the standard error that there was."""
    logger = logging.getLogger("dbos")
    for handler in [*logger.handlers]:
        logger.removeHandler(handler)
