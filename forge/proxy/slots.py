"""Slots: a limit on concurrent requests at the backend, with a bounded queue."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forge.errors import quantity
from stages.wire.server.errors import RequestError


class FullError(Exception):
    """The queue is full, or no slot became free in time; `error` is for the client."""

    def __init__(self, error: RequestError) -> None:
        super().__init__(error.message)
        self.error = error


class Slots:
    """The slots. A free one goes to the waiting caller with the fewest requests in progress, then to the earliest."""

    def __init__(self, slots: int, queue: int, timeout: float) -> None:
        self._free, self._queue, self._timeout = slots, queue, timeout
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._working: dict[str, int] = {}
        self.slots = slots

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    @property
    def working(self) -> int:
        """Requests at the backend."""
        return sum(self._working.values())

    @asynccontextmanager
    async def slot(self, caller: str) -> AsyncIterator[None]:
        """A slot until the end of the block. FullError if there is none."""
        if self._free and not self._waiting:
            self._free -= 1
        else:
            await self._wait(caller)
        self._working[caller] = self._working.get(caller, 0) + 1
        try:
            yield
        finally:
            self._working[caller] -= 1
            if not self._working[caller]:
                del self._working[caller]
            self._release()

    async def _wait(self, caller: str) -> None:
        if len(self._waiting) >= self._queue:
            raise FullError(
                _full(f"waiting for {quantity(self.slots, 'slot')}: {quantity(len(self._waiting), 'request')}")
            )
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (caller, place)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(self._timeout):
                await place
        except BaseException as error:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif place.done() and not place.cancelled():
                self._release()
            if isinstance(error, TimeoutError):
                raise FullError(_full(f"no slot was free for {quantity(self._timeout, 'second')}")) from None
            raise

    def _release(self) -> None:
        """Give the slot to the next waiting request, if any."""
        waiting = [entry for entry in self._waiting if not entry[1].done()]
        if not waiting:
            self._free += 1
            return
        first = min(waiting, key=lambda entry: self._working.get(entry[0], 0))
        self._waiting.remove(first)
        first[1].set_result(None)


def _full(why: str) -> RequestError:
    return RequestError(message=f"the server is busy: {why}", status=429, code="server_busy", retry_after=2)
