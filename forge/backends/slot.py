"""SlotWorker: one model slot shared by many jobs, by priority, then order of arrival, with preemption."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from forge.callbacks import OnChunk, Watcher
from forge.connection import Backend, Connection
from forge.errors import WorkerStopped
from stages.effect import Fault, Replied, Send, Undelivered

__all__ = ["SlotWorker", "Statistics", "WorkerStopped"]

_T = TypeVar("_T")


class Statistics(Struct, frozen=True, kw_only=True):
    """Counts of jobs. Each submitted job is in exactly one of the other counts.

    Except `preemptions`: how often a running job had to give up the slot.
    """

    submitted: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    stopped: int = 0
    waiting: int = 0
    running: int = 0
    preemptions: int = 0


class _Ticket:
    """A job's place in the queue. It keeps its number when preempted, so it is the next of its priority."""

    def __init__(self, priority: int, number: int, *, preemptible: bool) -> None:
        self.priority = priority
        self.number = number
        self.preemptible = preemptible
        self.preempted = False
        self.gone = False
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[object] | None = None

    def __lt__(self, other: "_Ticket") -> bool:
        return (self.priority, self.number) < (other.priority, other.number)


class SlotWorker:
    """Runs one job at a time: lower `priority` numbers first, equal ones in order of arrival.

    Belongs to one event loop. Leaving `async with SlotWorker() as worker` stops it for good.
    """

    def __init__(self) -> None:
        self._queue: list[_Ticket] = []
        self._current: _Ticket | None = None
        self._counts = Statistics()
        self._stopped = False

    @property
    def statistics(self) -> Statistics:
        """The current counts."""
        waiting = sum(not ticket.turn.done() for ticket in self._queue)
        return replace(self._counts, waiting=waiting, running=int(self._current is not None))

    async def submit(self, job: Callable[[], Awaitable[_T]], *, priority: int = 0, preemptible: bool = False) -> _T:
        """The result of the job, or its exception. WorkerStopped if the worker stops first.

        A running `preemptible` job is cancelled when a job with a lower number arrives, and restarted from the
        beginning when the slot is free: only for jobs that may be repeated. Cancelling the caller removes the job from
        the queue, or cancels it.
        """
        if self._stopped:
            raise WorkerStopped
        ticket = _Ticket(priority, self._counts.submitted, preemptible=preemptible)
        self._count(submitted=1)
        heapq.heappush(self._queue, ticket)
        self._dispatch()
        try:
            result = await self._served(ticket, job)
        except asyncio.CancelledError:
            self._count(cancelled=1)
            raise
        except WorkerStopped:
            self._count(stopped=1)
            raise
        except BaseException:
            self._count(failed=1)
            raise
        finally:
            self._leave(ticket)
        self._count(succeeded=1)
        return result

    async def _served(self, ticket: _Ticket, job: Callable[[], Awaitable[_T]]) -> _T:
        while True:
            turn = ticket.turn
            await turn
            task = asyncio.create_task(_run(job))
            ticket.task = task
            task.add_done_callback(lambda _: self._give_back(ticket))
            if ticket.preempted or self._stopped:  # preempted or stopped between its turn and now
                task.cancel()
            await _ended(task)
            if not task.cancelled():
                return task.result()
            if ticket.turn is turn:  # it was not put back into the queue
                raise WorkerStopped if self._stopped else asyncio.CancelledError

    def _dispatch(self) -> None:
        """Give the slot to the next job, or preempt the running one for it."""
        while self._queue and self._queue[0].turn.done():  # its caller has gone
            heapq.heappop(self._queue)
        current = self._current
        if not self._queue:
            return
        if current is None:
            self._current = heapq.heappop(self._queue)
            self._current.turn.set_result(None)
        elif current.preemptible and not current.preempted and self._queue[0].priority < current.priority:
            current.preempted = True
            self._count(preemptions=1)
            if current.task:
                current.task.cancel()

    def _leave(self, ticket: _Ticket) -> None:
        """The caller has gone: if the slot was given to it meanwhile, pass it on."""
        ticket.gone = True
        if not ticket.turn.cancel() and not ticket.turn.cancelled():
            ticket.turn.exception()  # retrieve the exception, so that asyncio does not report it
        if ticket.task is None or ticket.task.done():
            self._give_back(ticket)

    def _give_back(self, ticket: _Ticket) -> None:
        if self._current is not ticket:
            return
        self._current = None
        if ticket.preempted and ticket.task and ticket.task.cancelled() and not (ticket.gone or self._stopped):
            # Requeue at once, not when its caller wakes: otherwise a later job could overtake it.
            ticket.preempted, ticket.task = False, None
            ticket.turn = asyncio.get_running_loop().create_future()
            heapq.heappush(self._queue, ticket)
        self._dispatch()

    async def stop(self) -> None:
        """Cancel the running job and reject all waiting ones: every caller gets WorkerStopped."""
        self._stopped = True
        for ticket in self._queue:
            if not ticket.turn.done():
                ticket.turn.set_exception(WorkerStopped())
        self._queue.clear()
        if self._current and self._current.task:
            await _ended_by_force(self._current.task)

    async def __aenter__(self) -> Self:
        """The worker, ready for jobs."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the worker."""
        await self.stop()

    def share(self, backend: Backend, *, priority: int = 0, preemptible: bool = True) -> Backend:
        """The backend, with its model calls waiting for the slot; tools run without it.

        A model call has no side effects, so it may be preempted: its request is closed, and sent again later.
        """
        return _Shared(backend, self, priority, preemptible=preemptible)

    def _count(self, **more: int) -> None:
        self._counts = replace(self._counts, **{name: getattr(self._counts, name) + by for name, by in more.items()})


async def _run(job: Callable[[], Awaitable[_T]]) -> _T:
    return await job()


async def _ended(task: asyncio.Task[_T]) -> None:
    """Wait until the task has ended; cancelling the waiter cancels the task."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        await _ended_by_force(task)
        raise


async def _ended_by_force(task: asyncio.Task[_T]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieve the exception, so that asyncio does not report it


class _Shared:
    """A backend whose model calls wait for the worker's slot."""

    def __init__(self, backend: Backend, worker: SlotWorker, priority: int, *, preemptible: bool) -> None:
        self._backend, self._worker = backend, worker
        self._priority, self._preemptible = priority, preemptible

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The shared backend's connection; connecting needs no slot."""
        async with self._backend.connect() as connection:

            async def stream(effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
                attempts, send = count(), connection.told(on_chunk)

                async def job() -> Replied | Undelivered:
                    # After a preemption, tell the watcher that the reply starts again.
                    if before := next(attempts):
                        fault = Fault(kind="interrupted", detail="a job of higher priority wanted the slot")
                        await Watcher(on_chunk).forget(fault, before, 0.0)
                    return await send(effect)

                return await self._send(job)

            send = connection.send
            yield replace(connection, send=lambda effect: self._send(lambda: send(effect)), stream=stream)

    async def _send(self, job: Callable[[], Awaitable[Replied | Undelivered]]) -> Replied | Undelivered:
        try:
            return await self._worker.submit(job, priority=self._priority, preemptible=self._preemptible)
        except WorkerStopped as stopped:
            return Undelivered(fault=Fault(kind="unreachable", detail=str(stopped)), attempts=0)
