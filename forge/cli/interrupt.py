"""Ctrl-C: a run ends in order by it; by the second, at once."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress

from returns.result import Result

from forge.loop import Finished, Halted
from forge.watching import Watching

Running = Coroutine[None, None, Result[Finished, Halted]]
Begin = Callable[[Watching], Running]


async def interruptible(begin: Begin, watching: Watching) -> Result[Finished, Halted]:
    """The run; Ctrl-C ends it as `Cancelled`, with every call answered and the journal whole; the second, at once."""
    cancel, loop = asyncio.Event(), asyncio.get_running_loop()

    def interrupted() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        cancel.set()

    with suppress(NotImplementedError):  # Windows has no signal handlers on the loop; there Ctrl-C just ends it
        loop.add_signal_handler(signal.SIGINT, interrupted)
    return await begin({**watching, "cancel": cancel})
