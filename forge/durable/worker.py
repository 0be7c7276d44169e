"""A worker: a process that performs durable runs, and takes over those of dead workers.

DBOS is one object per process, so there is one worker per process.
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
from forge.backends.routing import reached
from forge.callbacks import OnChunk
from forge.connection import AnyBackend, Connection
from forge.durable.database import APPLICATION, STEPS_VERSION, WORKFLOW, Database, StoredJson
from forge.durable.records import SEGMENT, SegmentEnd, how_ended, json_text, queue_of, segment_id
from forge.durable.runs import Runs, Served, workflow_of
from forge.durable.segment import Performing
from forge.errors import BackendError, DefinitionError, ForgeError, quantity
from forge.runtime.emitter import OnEvent
from forge.workflow.workflow import Workflow
from stages.effect import Replied, Send, Undelivered

_log = logging.getLogger("forge")

_POLL = 0.2
"""Seconds between polls for new runs, and for cancellations of those in progress."""


class Rhythm(Struct, frozen=True, kw_only=True):
    """How workers detect dead workers, in seconds.

    Each increments a counter every `heartbeat`. A worker whose counter has not changed for `dead_after`, by the
    observer's clock, is considered dead and its runs are taken over. If it was only slow, its next step is rejected.
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
    """Perform runs of these workflows and agents while the context is open. Yields the `Runs` of the database.

    `database` is a file for SQLite, or `postgresql://…`. `backend`: the backend of all runs; None: each agent's own.
    `concurrency`: maximum concurrent runs. `slots`: maximum concurrent model calls. `per_minute`: maximum runs of a
    workflow started per minute, by all workers together. `answer_within`: seconds to answer a question. `drain`:
    seconds that runs have to end when the context closes; the others continue in another worker. `on_event` receives
    the events of runs performed here, and the deltas of replies; after a recovery, events are repeated. ForgeError for
    a database that cannot be opened.
    """
    served = all_of(workflows)
    bounds = {"concurrency": concurrency, "slots": slots, "per_minute": per_minute}
    _refuse_wrong(served, backend, bounds, answer_within=answer_within, rhythm=rhythm)
    if _open:
        raise ForgeError("this process already has a durable worker; give that one all workflows")
    opened = await asyncio.to_thread(Database, database)
    _open.append(opened)
    try:
        working = Worker(served, opened, backend, slots, on_event)
        async with working.launched(concurrency, per_minute, rhythm, drain):
            yield Runs(opened, within=answer_within)
    finally:
        _open.remove(opened)
        await asyncio.to_thread(opened.close)


_open: list[Database] = []
"""The database of this process's worker, if there is one."""


def all_of(workflows: Served | Sequence[Served]) -> tuple[Served, ...]:
    """The workflows and agents, given as one or several."""
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
        (not served, "a worker needs at least one workflow or agent"),
        (twice, f"several workflows are named {', '.join(twice)}; each needs a unique name"),
        (lonely, f"{', '.join(lonely)}: a workflow has no backend of its own; give the worker a backend"),
        (keepers, f"{', '.join(keepers)}: durable runs store conversations themselves; remove the agent's memory"),
        (fallen, f"{', '.join(fallen)}: durable runs do not support fallbacks; remove them"),
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


class Worker:
    """Performs segments in this process."""

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
        """The segments that this process performs: set their event to cancel them."""
        self._abandoned: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._leaving = False
        self._id = uuid4().hex

    @asynccontextmanager
    async def launched(
        self, concurrency: int, per_minute: int | None, rhythm: Rhythm, drain: float
    ) -> AsyncIterator[None]:
        """Perform runs while the context is open."""
        database = self._database
        await asyncio.to_thread(database.beat, self._id)
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": database.url,
                "system_database_engine": database.engine,
                "serializer": StoredJson(),
                "application_version": STEPS_VERSION,
                "executor_id": self._id,
                "max_executor_threads": 16,
                "notification_listener_polling_interval_sec": _POLL,
                "log_level": "CRITICAL",
            }
        )

        async def forge_run(text: str) -> str:
            return await self._perform(text, again)

        # However often its machines die, a run is worth resuming.
        again = DBOS.workflow(name=WORKFLOW, max_recovery_attempts=10_000)(forge_run)
        DBOS.listen_queues([queue_of(name) for name in self._served])
        background: list[asyncio.Task[None]] = []
        try:
            DBOS.launch()  # here, so that runs use this event loop
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
            left = await self._drained(drain)
            database.leave()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
            _silence()
            # DBOS replaced the loop's executor with its own, and has closed it.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            await self._connections.aclose()
            try:
                # Its remaining runs are taken over at once: their executor has no counter.
                await asyncio.to_thread(database.forget, self._id)
            except DBAPIError as error:
                after = (
                    f"workers continue it after {quantity(rhythm.dead_after, 'second')}, without what is not recorded"
                )
                _log.warning(
                    "this worker stopped without telling the database of runs %s (%s); it left %s unfinished%s",
                    database.shown,
                    error.orig,
                    quantity(left, "run"),
                    f": {after}" if left else "",
                )

    async def _drained(self, seconds: float) -> int:
        """Wait for runs in progress. Those that take longer are abandoned, as if the process had died: how many."""
        self._leaving = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        left = [*self._tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return len(left)

    async def _perform(self, text: str, again: Callable[[str], Coroutine[object, object, str]]) -> str:
        """One segment."""
        segment = SEGMENT.decode(text)
        if self._leaving:
            await asyncio.Event().wait()  # dequeued while this process is ending; it continues elsewhere
        first, own = segment_id(segment.run, 0), segment_id(segment.run, segment.number)
        task = asyncio.current_task()
        cancel = self._live[own] = asyncio.Event()
        try:
            if task is not None:
                self._tasks.add(task)
            if await asyncio.to_thread(self._database.cancelled, [first]):
                cancel.set()
            doing = Performing(self, self._served[segment.workflow], segment, cancel)
            end = await doing.run(again)
            if isinstance(end, SegmentEnd):  # before it ends, so that lists miss no ended run
                ended = {"ended": how_ended(end.halt)}
                await self._database.client.update_workflow_attributes_async(first, ended, merge=True)
            return json_text(end)
        except DBAPIError as error:
            # A full disk, for example. The run goes on: the sweeper enqueues the segment again once it can.
            _log.warning("cannot record the run %s: %s", segment.run, str(error).partition("\n")[0])
            self._leave(own, cancel)
            await self._abandoned.setdefault(own, asyncio.Event()).wait()
            raise
        finally:
            self._leave(own, cancel)
            if task is not None:
                self._tasks.discard(task)

    def _leave(self, segment: str, cancel: asyncio.Event) -> None:
        """Forget an execution, but not a later one of the same segment, which has another event."""
        if self._live.get(segment) is cancel:
            del self._live[segment]

    async def connection(self, workflow: str) -> Connection:
        """The connection to the workflow's model, opened on first use."""
        backend = self._backends[workflow]
        async with self._connecting:
            if id(backend) not in self._connected:
                opened = await self._connections.enter_async_context(reached(backend).connect())
                self._connected[id(backend)] = opened
            return self._connected[id(backend)]

    async def send(self, workflow: str, effect: Send, on_chunk: OnChunk | None) -> Replied | Undelivered:
        """Call the model once a slot is free."""
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
        """The messages to the run. Retried until the database responds: an error would become the step's outcome."""
        while True:
            try:
                return await asyncio.to_thread(self._database.said, run, after)
            except DBAPIError:
                await asyncio.sleep(_POLL)

    async def continued(self, first: str, following: str, number: int) -> None:
        """Record the run's last segment, and wake it if the run is being cancelled: it may wait for a person."""
        client = self._database.client
        await client.update_workflow_attributes_async(first, {"segment": number}, merge=True)
        if await asyncio.to_thread(self._database.cancelled, [first]):
            await client.set_workflow_delay_async(following, delay_seconds=0)

    async def _watch(self) -> None:
        """Cancel the runs in progress that are marked for it."""
        while True:
            await asyncio.sleep(_POLL)
            if not self._live:
                continue
            with suppress(Exception):  # the database may be unavailable for a while
                firsts = {one: f"{one.rpartition(':')[0]}:0" for one in self._live}
                marked = await asyncio.to_thread(self._database.cancelled, [*firsts.values()])
                for one in [one for one, first in firsts.items() if first in marked and one in self._live]:
                    self._live[one].set()

    async def _sweep(self, rhythm: Rhythm) -> None:
        """Increment the counter; take over runs of executors whose counter stopped, and runs that this one has lost."""
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
                lost = {one: lost.get(one, now) for one in taken if one not in self._live}
                for one in [one for one, since in lost.items() if now - since >= rhythm.dead_after]:
                    await self._database.client.resume_workflow_async(one, queue_name=taken[one])
                    if (abandoned := self._abandoned.pop(one, None)) is not None:
                        abandoned.set()
            except Exception as error:  # noqa: BLE001 - it may be away for a while; nothing else ends this
                _log.warning("cannot query the database of runs: %s", str(error).partition("\n")[0])
            await asyncio.sleep(rhythm.heartbeat)

    def _take_over(self, executor: str) -> None:
        # The counter goes last, so that a failure here is repeated at the next sweep.
        DBOS._recover_pending_workflows([executor])  # noqa: SLF001 - the public way needs DBOS's own service
        self._database.forget(executor)


def _silence() -> None:
    """Remove DBOS's log handler, which keeps an old standard error."""
    logger = logging.getLogger("dbos")
    for handler in [*logger.handlers]:
        logger.removeHandler(handler)
