"""SlotWorker: one model slot that several backends share, by priority, then order of arrival."""

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from forge.connection import Backend, Connection, Sender
from stages.effect import Replied, Send, Undelivered


class SlotWorker:
    """One slot for the model calls of all backends that share it. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._busy = False

    def share(self, backend: Backend, *, priority: int = 0) -> Backend:
        """The backend, with its model calls waiting for the slot: lower numbers first. Tools run without it."""
        return _Shared(backend, self, priority)

    @asynccontextmanager
    async def slot(self, priority: int) -> AsyncIterator[None]:
        """The slot, as long as the block runs."""
        if self._busy:
            turn = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (priority, next(self._numbers), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # the slot was given to it at the same time
                    self._pass_on()
                raise
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._busy = False


class _Shared:
    """A backend whose model calls wait for the worker's slot."""

    def __init__(self, backend: Backend, worker: SlotWorker, priority: int) -> None:
        self._backend, self._worker, self._priority = backend, worker, priority

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The shared backend's connection; connecting needs no slot."""
        async with self._backend.connect() as connection:
            yield connection.around(self._waiting)

    def _waiting(self, sender: Sender) -> Sender:
        async def send(effect: Send) -> Replied | Undelivered:
            async with self._worker.slot(self._priority):
                return await sender(effect)

        return send
