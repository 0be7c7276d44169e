"""Time limits of tool calls: in all and without progress; the run goes on even if a tool cannot be cancelled."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import TypeVar

from stages.tool import ToolSpec

GRACE = 1.0
"""Seconds that a call has to end once it was cancelled after a time-out."""

_T = TypeVar("_T")

_log = logging.getLogger("forge")

_left_behind: set[object] = set()
"""Calls that did not end when cancelled; without a reference a task may be garbage-collected while it runs."""


class Overdue(Exception):  # noqa: N818 - nothing is wrong with it but the time
    """A call took longer than it may; the text says than what. `stopped`: it has ended since."""

    def __init__(self, why: str, *, stopped: bool) -> None:
        super().__init__(why)
        self.stopped = stopped


class TimeLimit:
    """The time limits of one call: in all, and between two signs of life. They start when this is made."""

    def __init__(self, spec: ToolSpec) -> None:
        self._spec = spec
        self._now = asyncio.get_running_loop().time
        self._end = None if spec.timeout is None else self._now() + spec.timeout
        self._heard = self._now()

    def renew(self) -> None:
        """There was a sign of life."""
        self._heard = self._now()

    async def bound(self, call: Coroutine[None, None, object]) -> object:
        """What the call returns or raises. Overdue where it takes too long, even if it does not let itself be stopped.

        What it returns all the same while it is being stopped counts.
        """
        task = asyncio.create_task(call, name=f"forge tool {self._spec.name}")
        try:
            while not task.done() and (left := self._next() - self._now()) > 0:
                await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError:
            task.cancel()
            leave(task)  # whoever cancelled decides how long to wait
            await asyncio.wait({task})
            if task.cancelled():
                raise
        if task.done():
            return task.result()
        return await self._stop(task)

    def _next(self) -> float:
        """When it is over, if nothing more is heard."""
        silent = None if self._spec.idle_timeout is None else self._heard + self._spec.idle_timeout
        return min(when for when in (silent, self._end, float("inf")) if when is not None)

    async def _stop(self, task: asyncio.Task[object]) -> object:
        why = self._why()
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE)
        if not task.done():
            _log.warning("%s %s and does not let itself be cancelled; the run goes on without it", self._spec.name, why)
            leave(task)
            raise Overdue(why, stopped=False)
        with suppress(asyncio.CancelledError):
            return task.result()
        raise Overdue(why, stopped=True)

    def _why(self) -> str:
        if self._end is not None and self._next() == self._end:
            return f"took longer than its {self._spec.timeout} seconds"
        return f"gave no sign of life for {self._spec.idle_timeout} seconds"


def leave(task: asyncio.Future[_T]) -> None:
    """Wait for the task no more, not at the end of the loop either: `asyncio.run` would, for ever.

    It goes on for as long as the loop does.
    """
    if isinstance(task, asyncio.Task) and not task.done():
        _left_behind.add(task)
        asyncio.tasks._unregister_task(task)  # noqa: SLF001 - named so, and documented: docs.python.org, "Extending"
        task.add_done_callback(_gone)


def _gone(task: asyncio.Task[_T]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # what is never looked at would be reported as forgotten
