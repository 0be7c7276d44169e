"""Ctrl-C and SIGTERM: the first cancels the run, the second aborts it; outside a run, either ends the program."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from returns.result import Result

from forge.outcome import Finished, Halted
from forge.runtime.watching import Watching

RunInProgress = Coroutine[None, None, Result[Finished, Halted]]
_T = TypeVar("_T")
_Handler = Callable[[int, FrameType | None], None]

SIGPIPE = 13
"""The signal's number; the module `signal` lacks it on Windows."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal ended the program; `code` is the exit code: 128 plus the signal's number, as in shells."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number


def raise_interrupted(number: int, _: FrameType | None) -> None:
    """The handler outside a run: raises Interrupted."""
    raise Interrupted(number)


@contextmanager
def handling(handler: _Handler) -> Iterator[None]:
    """Handle signals inside this context, except those that the parent process ignores."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can have handlers
        return
    before = {number: was for number in _SIGNALS if (was := signal.getsignal(number)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


async def until_signal(work: Coroutine[None, None, int], stop_work: Callable[[], object] | None = None) -> int:
    """The exit code that the work returns; after a signal, that of the signal.

    A signal calls `stop_work`, by default cancels the work; a second one exits at once.
    """
    task, loop, code = asyncio.ensure_future(work), asyncio.get_running_loop(), 0

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal code
        if code:
            os._exit(128 + number)
        code = 128 + number
        loop.call_soon_threadsafe(stop_work or task.cancel)

    with handling(stop):
        try:
            done = await task
        except asyncio.CancelledError:
            if not code:
                raise
            return code
        return code or done


class StopSignals:
    """The handler of a run. `code` is the exit code of the first signal, 0 before it.

    The first signal calls `told` on the loop. The second writes `last_words` to standard error and exits immediately:
    the journal is always complete, and servers started by forge notice.
    """

    def __init__(self, told: Callable[[], None], last_words: Callable[[], str]) -> None:
        self.code = 0
        self._told, self._last_words = told, last_words
        self._cancel: Callable[[], object] | None = None

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Cancel the run; the second time, exit."""
        if self.code:
            # not with print, because the signal may have interrupted one
            os.write(2, self._last_words().encode(errors="replace"))
            os._exit(128 + number)
        self.code = 128 + number
        if self._cancel is not None:
            self._cancel()

    async def run(self, begin: Callable[[Watching], Coroutine[None, None, _T]], watching: Watching) -> _T:
        """The run; the first signal ends it as `Cancelled`, with every call answered and a complete journal."""
        cancel, loop = asyncio.Event(), asyncio.get_running_loop()

        def stop() -> None:
            cancel.set()
            self._told()

        # An asyncio handler would wait for the loop, which a user's tool may block.
        self._cancel = lambda: loop.call_soon_threadsafe(stop)
        if self.code:
            stop()
        try:
            return await begin({**watching, "cancel": cancel})
        finally:
            self._cancel = None
