"""A run as an async stream: its events, deltas among them, then its end."""

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Generic, TypeVar, Unpack

from returns.result import Success

from forge.connection import AnyBackend
from forge.errors import checked_options
from forge.outcome import Finished, Halted
from forge.runtime.emitter import OnEvent, notify
from forge.runtime.runs import run
from forge.runtime.watching import Following, RunOptions
from forge.workflow.workflow import Workflow
from stages.events import Stamped, ToolProgressed
from stages.wire.deltas import Delta

_R = TypeVar("_R")
_T = TypeVar("_T")

WAITING_LIMIT = 256
"""Maximum number of unread events before the run waits for its reader."""


@checked_options
async def stream(
    workflow: Workflow[_R], message: str, *, backend: AnyBackend, **options: Unpack[RunOptions]
) -> AsyncGenerator[Stamped | Finished[_R] | Halted, None]:
    """The events of `forge.run` and the deltas of its replies, stamped, as they come; last, the `Finished` or `Halted`.

    The run stays at most a few hundred events ahead of the reader. Leaving the loop cancels it as `cancel`
    does: every call is answered, the journal is complete; the end of the run is awaited when the generator is closed
    (`contextlib.aclosing`). Raises what `run` raises.
    """

    async def start(line: EventQueue[Stamped | Finished[_R] | Halted], stop: asyncio.Event) -> None:
        told: RunOptions = {**options, **told_to(line.put, line.room, options), "cancel": stop}
        ended = await run(workflow, message, backend=backend, **told)
        line.put(ended.unwrap() if isinstance(ended, Success) else ended.failure())

    async with aclosing(streamed(start, same_progress, options.get("cancel"))) as events:
        async for event in events:
            yield event


async def streamed(
    start: Callable[["EventQueue[_T]", asyncio.Event], Coroutine[object, object, None]],
    replaces: Callable[[_T, _T], bool],
    cancel: asyncio.Event | None = None,
) -> AsyncGenerator[_T, None]:
    """What the coroutine puts into the line that it is given, until it ends; what it raises comes last.

    It has to end soon after the event that it is given is set: by `cancel`, or as the reader leaves. `replaces`:
    whether the later of two unread items makes the one before it needless.
    """
    line, stop = EventQueue(replaces), asyncio.Event()
    running = asyncio.ensure_future(start(line, stop))
    running.add_done_callback(lambda _: line.close())

    async def forward(asked: asyncio.Event) -> None:
        await asked.wait()
        stop.set()

    forwarding = asyncio.ensure_future(forward(cancel)) if cancel else None
    try:
        while (unread := await line.next()) is not None:
            yield unread[0]
        running.result()
    finally:
        stop.set()
        if forwarding is not None:
            forwarding.cancel()
        if not running.done():
            await asyncio.wait({running})
            running.result()  # an error on the way out is raised, not lost


class EventQueue(Generic[_T]):
    """The unread events, in order."""

    def __init__(self, replaces: Callable[[_T, _T], bool]) -> None:
        self._replaces = replaces
        self._waiting: deque[_T] = deque()
        self._closed = False
        self._came = asyncio.Event()
        self._room = asyncio.Event()

    def put(self, event: _T) -> None:
        """Add an event; where many are unread, in the place of the last if it `replaces` that: memory is bounded."""
        if len(self._waiting) >= WAITING_LIMIT and self._replaces(self._waiting[-1], event):
            self._waiting.pop()
        self._waiting.append(event)
        self._came.set()

    async def room(self) -> None:
        """Wait until fewer than the maximum are unread."""
        while len(self._waiting) >= WAITING_LIMIT:
            self._room.clear()
            await self._room.wait()

    async def next(self) -> tuple[_T] | None:
        """The next event, alone in a tuple; None after the last one."""
        while not self._waiting:
            if self._closed:
                return None
            self._came.clear()
            await self._came.wait()
        event = self._waiting.popleft()
        self._room.set()
        return (event,)

    def close(self) -> None:
        """No more will come."""
        self._closed = True
        self._came.set()


def told_to(put: OnEvent, room: Callable[[], Awaitable[None]], watching: Following) -> Following:
    """The functions by which a run's events are `put` into a line, before the user's own are called.

    Replies are streamed, and wait until there is `room` in the line.
    """
    on_event, own = watching.get("on_event"), watching.get("on_chunk")

    def listener(stamped: Stamped) -> None:
        put(stamped)
        if on_event is not None:
            notify("on_event", on_event, stamped)

    async def on_chunk(delta: Delta) -> None:
        if own is not None and inspect.isawaitable(told := own(delta)):
            await told
        await room()

    return {"on_event": listener, "on_chunk": on_chunk}


def same_progress(last: object, later: object) -> bool:
    """Whether both are progress of one tool, so that the later makes the earlier needless."""
    match last, later:
        case Stamped(run=run, event=ToolProgressed(call_id=one)), Stamped(run=same, event=ToolProgressed(call_id=two)):
            return (run, one) == (same, two)
        case _:
            return False
