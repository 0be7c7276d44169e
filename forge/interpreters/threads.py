"""Daemon threads for sync tools: a tool that never returns blocks neither the event loop nor the exit."""

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from queue import SimpleQueue

Hear = Callable[[object], None]
"""Called on the event loop with each value that a generator yields."""


def unheard(value: object) -> None:
    """Ignore the value."""


async def in_thread(call: Callable[[], object], hear: Hear) -> object:
    """The result of the call; of a generator, its return value or last yielded value. Raises what the call raises.

    Returns at once when cancelled. A thread cannot be stopped: a plain function runs to its end, and its result is
    ignored; a generator is closed at its next yield.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not done.done():
            settled()

    def report(value: object) -> bool:
        """Pass the value on and wait until it was handled, so that a fast generator does not fill the memory."""
        heard = threading.Event()

        def tell() -> None:
            try:
                settle(lambda: hear(value))
            finally:
                heard.set()

        return _post(loop, tell) and heard.wait() and not done.done()

    def work() -> None:
        try:
            value = _last_of(call(), report)
        # Reraised where the call is awaited, including SystemExit, which must neither end the program nor be lost.
        except BaseException as error:  # noqa: BLE001
            caught = error
            if not isinstance(error, Exception) or isinstance(error, StopIteration):  # which no future can carry
                caught = RuntimeError(f"{type(error).__name__}: {error}")
            _post(loop, lambda: settle(lambda: done.set_exception(caught)))
        else:
            _post(loop, lambda: settle(lambda: done.set_result(value)))

    _start(partial(contextvars.copy_context().run, work))
    return await done


def _last_of(value: object, report: Callable[[object], bool]) -> object:
    """The value; a generator is run to its end, for its return value or last yielded value."""
    if not isinstance(value, Generator):
        return value
    last: object = None
    with closing(value):
        while True:
            try:
                last = next(value)
            except StopIteration as end:
                return last if end.value is None else end.value
            if not report(last):
                return None


def _post(loop: asyncio.AbstractEventLoop, step: Callable[[], None]) -> bool:
    """Schedule the step on the loop. False if the loop is closed, when nobody waits any more."""
    try:
        loop.call_soon_threadsafe(step)
    except RuntimeError:
        return False
    return True


_Job = Callable[[], None]

_idle: list[SimpleQueue[_Job]] = []
"""One queue per idle thread: starting a thread costs as much as a turn of a run."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads don't survive a fork


def _start(job: _Job) -> None:
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue()
        threading.Thread(target=_serve, args=(jobs,), name="forge-tool", daemon=True).start()
    jobs.put(job)


def _serve(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get()()
        _idle.append(jobs)
