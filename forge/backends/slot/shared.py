"""A backend whose model calls wait for the shared slot."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count

from msgspec.structs import replace

from forge.connection import Backend, Connection
from forge.errors import WorkerStopped
from forge.runtime.callbacks import OnChunk, Watcher
from stages.effect import Fault, Replied, Send, Undelivered

_PREEMPTED = "a job of higher priority wanted the slot"

Sending = Callable[[], Awaitable[Replied | Undelivered]]
"""A model call, as a job."""


class Shared:
    """The backend; `submit` has a job run when it is its turn, and raises WorkerStopped where it never will be."""

    def __init__(self, backend: Backend, submit: Callable[[Sending], Awaitable[Replied | Undelivered]]) -> None:
        self._backend = backend
        self._submit = submit

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The connection of the backend that is shared; being connected takes no turn."""
        async with self._backend.connect() as connection:
            yield replace(
                connection,
                send=lambda effect: self._send(lambda: connection.send(effect)),
                stream=lambda effect, on_chunk: self._send(_streaming(connection, effect, on_chunk)),
            )

    async def _send(self, send: Sending) -> Replied | Undelivered:
        try:
            return await self._submit(send)
        except WorkerStopped as stopped:
            return Undelivered(fault=Fault(kind="unreachable", detail=str(stopped)), attempts=0)


def _streaming(connection: Connection, effect: Send, on_chunk: OnChunk) -> Sending:
    """The job of a streamed reply; where it had to make room, the watcher is told that the reply begins anew."""
    started = count(1)
    send = connection.told(on_chunk)

    async def job() -> Replied | Undelivered:
        if (attempt := next(started)) > 1:
            await Watcher(on_chunk).forget(Fault(kind="interrupted", detail=_PREEMPTED), attempt - 1, 0.0)
        return await send(effect)

    return job
