"""Ctrl-C: a run ends in order by it; what comes before one, while the model is reached, at once."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

from returns.result import Result

from forge.connection import Backend, Connection
from forge.loop import Finished, Halted
from forge.run import Watching

Running = Coroutine[None, None, Result[Finished, Halted]]
Begin = Callable[[Backend, Watching], Running]


class Reaching:
    """A backend, and whether it was reached."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.reached = False

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Connect as the backend does."""
        async with self._backend.connect() as connection:
            self.reached = True
            yield connection


async def interruptible(begin: Begin, backend: Backend, watching: Watching) -> Result[Finished, Halted]:
    """The run; Ctrl-C ends it as `Cancelled`, with every call answered and the journal whole; the second, at once.

    Before the model is reached there is nothing to end in order: KeyboardInterrupt.
    """
    cancel, loop, reaching = asyncio.Event(), asyncio.get_running_loop(), Reaching(backend)
    running = asyncio.ensure_future(begin(reaching, {**watching, "cancel": cancel}))
    stopped = False

    def interrupted() -> None:
        nonlocal stopped
        loop.remove_signal_handler(signal.SIGINT)
        cancel.set()
        if not reaching.reached:
            stopped = running.cancel()

    with suppress(NotImplementedError):  # Windows has no signal handlers on the loop; there Ctrl-C just ends it
        loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        return await running
    except asyncio.CancelledError:
        if stopped:
            raise KeyboardInterrupt from None
        raise
