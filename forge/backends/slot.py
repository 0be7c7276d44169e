"""Slots: a limit on concurrent model calls; and a slot that several backends share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forge.connection import Backend, Connection, Sender
from forge.errors import quantity
from stages.effect import Replied, Send, Undelivered


class FullError(Exception):
    """The queue is full, or no slot became free in time."""


class Slots:
    """The slots, with a queue of at most `queue` callers, each for at most `timeout` seconds; None: no limit.

    A free slot goes to the waiting caller of the lowest priority number, among those to the one with the fewest slots,
    then to the earliest. Belongs to one event loop.
    """

    def __init__(self, slots: int, queue: int | None = None, timeout: float | None = None) -> None:
        self.slots, self._queue, self._timeout = slots, queue, timeout
        self._waiting: list[tuple[int, str, asyncio.Future[None]]] = []
        self._working = Counter[str]()

    @property
    def waiting(self) -> int:
        """Callers in the queue."""
        return len(self._waiting)

    @property
    def working(self) -> int:
        """Slots in use."""
        return self._working.total()

    @asynccontextmanager
    async def slot(self, caller: str = "", priority: int = 0) -> AsyncIterator[None]:
        """A slot until the end of the block. FullError if there is none."""
        if self.working < self.slots:
            self._working[caller] += 1
        else:
            await self._wait(caller, priority)
        try:
            yield
        finally:
            self._release(caller)

    async def _wait(self, caller: str, priority: int) -> None:
        if self._queue is not None and self.waiting >= self._queue:
            waiting = quantity(self.waiting, "request")
            raise FullError(f"waiting for {quantity(self.slots, 'slot')}: {waiting}")
        entry = priority, caller, asyncio.get_running_loop().create_future()
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(self._timeout) as limit:
                await entry[2]
        except BaseException as error:
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:  # the slot was given to it at the same moment
                self._release(caller)
            if isinstance(error, TimeoutError) and limit.expired():
                raise FullError(f"no slot was free for {quantity(self._timeout or 0, 'second')}") from None
            raise

    def _release(self, caller: str) -> None:
        """Pass the caller's slot on to who waits, if anybody does."""
        self._working[caller] -= 1
        if not self._working[caller]:
            del self._working[caller]  # callers come and go
        # One whose task is being cancelled removes itself later.
        waiting = [entry for entry in self._waiting if not entry[2].done()]
        if waiting:
            first = min(waiting, key=lambda entry: (entry[0], self._working[entry[1]]))
            self._waiting.remove(first)
            self._working[first[1]] += 1
            first[2].set_result(None)


class SlotWorker:
    """One slot for the model calls of all backends that share it. Belongs to one event loop."""

    def __init__(self) -> None:
        self._slots = Slots(1)

    def share(self, backend: Backend, *, priority: int = 0) -> Backend:
        """The backend, with its model calls waiting for the slot: lower numbers first. Tools run without it."""
        return _Shared(backend, self._slots, priority)


class _Shared:
    """A backend whose model calls wait for a slot."""

    def __init__(self, backend: Backend, slots: Slots, priority: int) -> None:
        self._backend, self._slots, self._priority = backend, slots, priority

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The shared backend's connection; connecting needs no slot."""
        async with self._backend.connect() as connection:
            yield connection.around(self._waiting)

    def _waiting(self, sender: Sender) -> Sender:
        async def send(effect: Send) -> Replied | Undelivered:
            async with self._slots.slot(priority=self._priority):
                return await sender(effect)

        return send
