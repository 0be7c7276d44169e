"""Ctrl-C and SIGTERM: the first cancels the run, the second aborts it; outside a run, either ends the program."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType

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
    before = {number: was for number in _SIGNALS if (was := signal.getsignal(number)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, was in before.items():
            signal.signal(number, was)


class Stopping:
    """The handler of a loop that has work to end. `code` is the exit code of the last signal, 0 before the first.

    The first signal calls `first` on the loop, the second `second`. Without one, it writes `last_words` to standard
    error and exits immediately.
    """

    def __init__(
        self,
        first: Callable[[], object],
        second: Callable[[], object] | None = None,
        last_words: Callable[[], str] = str,
    ) -> None:
        self.code = 0
        self._loop = asyncio.get_running_loop()
        self._first, self._second, self._last_words = first, second, last_words

    @property
    def again(self) -> str:
        """How to abort the work, in the way in which it was stopped."""
        pressed = self.code == 128 + signal.SIGINT
        return "press Ctrl-C again to abort" if pressed else "a second signal aborts it"

    def __call__(self, number: int, _: FrameType | None = None) -> None:
        """Stop the work; the second time, exit."""
        do = self._second if self.code else self._first
        self.code = 128 + number
        if do is None:
            # not with print, because the signal may have interrupted one
            os.write(2, self._last_words().encode(errors="replace"))
            os._exit(self.code)
        # An asyncio handler would wait for the loop, which a user's tool may block.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do)


async def until_signal(work: Coroutine[None, None, int], stop_work: Callable[[], object] | None = None) -> int:
    """The exit code that the work returns; after a signal, that of the signal.

    A signal calls `stop_work`, by default cancels the work; a second one exits at once.
    """
    task = asyncio.ensure_future(work)
    stop = Stopping(stop_work or task.cancel)
    with handling(stop):
        try:
            done = await task
        except asyncio.CancelledError:
            if not stop.code:
                raise
            return stop.code
    return stop.code or done
