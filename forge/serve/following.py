"""Following: the events of runs for their current readers, derived once per run whatever the number of readers.

Recorded events are read from the database, so a reader misses none and gets none twice, whichever process performs the
run. Deltas of a reply being written in this process are added to them, and dropped once the reply is recorded. They are
kept whether or not anybody reads, so that a reader who joins in the middle of a reply gets all of it. A reader holds
only its position, so one that stops reading costs nothing.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import msgspec

from forge.durable.runs import EventReader, Run, Runs
from forge.errors import RunError
from forge.serve.views import event_view, run_view
from forge.workflow.workflow import Workflow
from stages.events import (
    Event,
    ModelFailed,
    RunFailed,
    RunFinished,
    RunHalted,
    RunStarted,
    Stamped,
    ToolProgressed,
    TurnStarted,
)

_log = logging.getLogger("forge.serve")

_POLL = 0.2
"""Seconds between polls for steps recorded by other processes."""

_AT_ONCE = 64 * 1024
"""Bytes after which a write to one reader ends: it may be slow, and there may be hundreds of readers."""

_KEPT = 32 * 1024 * 1024
"""Bytes of live events kept for readers who join later, over all runs: about a hundred thousand tokens."""

Sequence = tuple[int, int]


class Following:
    """A run that is being followed. `changed` is set, and replaced, whenever there is more."""

    def __init__(self, run: Run, live: Iterable[tuple[Sequence, bytes]] = ()) -> None:
        self.id = run.id
        self.readers = self.joined = 0
        """Its readers now, and ever."""
        self.told: list[tuple[Sequence, bytes]] = []
        """All recorded events, encoded for the stream."""
        self.live = [*live]
        """Live events of the effect in progress; `dropped` counts how often they were discarded."""
        self.dropped = 0
        self.run, self.states = run, 1
        """The run when last read, and the number of its states seen so far."""
        self.over = False
        """The run has ended and all its events are here, or it cannot be followed any further (`problem`)."""
        self.problem: Exception | None = None
        self.changed = asyncio.Event()
        self.reader: EventReader | None = None
        self.head: tuple[str, tuple[str, int]] | None = None
        """The segment being read, and its progress when it was last looked at; None: read it again."""
        self.status: tuple[str, str] | None = None
        """Its last segment, and the segment's status when `run` was read."""

    @property
    def last(self) -> Sequence:
        """The sequence of the last recorded event."""
        return self.told[-1][0] if self.told else (0, -1)

    def wake(self) -> None:
        """Wake the readers that wait."""
        self.changed.set()
        self.changed = asyncio.Event()

    def hear(self, sequence: Sequence, event: bytes) -> None:
        """Add a live event, known only to this process, to be shown until the effect is recorded."""
        self.live.append((sequence, event))
        self.wake()

    def end(self, problem: Exception) -> None:
        """Stop following because of a problem."""
        if not isinstance(problem, RunError):
            _log.warning("the run %s cannot be followed: %s", self.id, str(problem).partition("\n")[0])
        self.problem, self.over = problem, True
        self.wake()

    def add(self, found: Iterable[Stamped]) -> None:
        """Add recorded events."""
        for stamped in found:
            if (event := event_view(stamped)) is not None:
                lasts = isinstance(stamped.event, Event) and not isinstance(stamped.event, ToolProgressed)
                self.told.append((stamped.sequence, _sse(event, stamped.sequence if lasts else None)))
        effects = self.last[0]
        if self.live and self.live[0][0][0] < effects:
            self.live = [one for one in self.live if one[0][0] >= effects]
            self.dropped += 1

    def discard(self, effects: int) -> None:
        """Drop the live events after so many effects: the next one failed, or is performed again, and told them."""
        kept = [one for one in self.live if one[0][0] < effects]
        if len(kept) < len(self.live):
            self.live = kept
            if not kept:  # otherwise no reader has come further than to these
                self.dropped += 1


class Followings:
    """The runs being followed. When `closing` is set, the server is stopping and readers are disconnected."""

    def __init__(self, closing: asyncio.Event) -> None:
        self._runs: Runs  # since watching()
        self._followed: dict[str, Following] = {}
        self._within: dict[str, str] = {}
        """The outer run of each agent's run, while that is in progress."""
        self._live: dict[str, list[tuple[Sequence, bytes]]] = {}
        """The live events of each run's effect in progress, of `_size` bytes in all."""
        self._size = 0
        self._look, self._reading = asyncio.Event(), asyncio.Semaphore(16)
        self.closing = closing

    def heard(self, stamped: Stamped) -> None:
        """Take an event from this process's worker; a recorded one makes the run be read at once."""
        outer = self._within.get(stamped.parent, stamped.parent)
        if outer:
            self._within[stamped.run] = outer
            if isinstance(stamped.event, RunFinished | RunHalted | RunFailed):
                del self._within[stamped.run]
        run = outer or stamped.run
        if outer and not isinstance(stamped.event, Event):
            return  # deltas of inner agents are not shown: nobody could read several at once
        followed = self._followed.get(run)
        if outer or isinstance(stamped.event, ToolProgressed) or not isinstance(stamped.event, Event):
            if (event := event_view(stamped)) is None:
                return
            told = _sse(event)
            self._keep(run, stamped.sequence, told)
            if followed is not None:
                followed.hear(stamped.sequence, told)
        else:
            self._drop(run)  # the effect is recorded, or performed again
            if followed is not None:
                if isinstance(stamped.event, TurnStarted | ModelFailed | RunHalted):
                    followed.discard(stamped.sequence[0])  # those of a reply wait for its record
                followed.head = None
                self._look.set()

    def _keep(self, run: str, sequence: Sequence, event: bytes) -> None:
        self._live.setdefault(run, []).append((sequence, event))
        self._size += len(event)
        while self._size > _KEPT:
            self._drop(next(iter(self._live)))  # of a long reply, later events are kept again

    def _drop(self, run: str) -> None:
        self._size -= sum(len(event) for _, event in self._live.pop(run, ()))

    @asynccontextmanager
    async def watching(self, runs: Runs) -> AsyncIterator[None]:
        """Poll the runs while the context is open."""
        self._runs = runs
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def of(self, run: Run, workflow: Workflow) -> AsyncIterator[Following]:
        """Follow the run while the context is open. RunError if its workflow has changed."""
        followed = self._followed.get(run.id)
        if followed is None:
            reader = await self._runs.reader(run.id, workflow)
            followed = self._followed.setdefault(run.id, Following(run, self._live.get(run.id, ())))
            followed.reader = followed.reader or reader
        elif followed.over and followed.problem is None:  # read again, because a retry may have continued it
            followed.over, followed.head, followed.status = False, None, None
        followed.readers += 1
        followed.joined += 1
        self._look.set()
        try:
            yield followed
        finally:
            followed.readers -= 1
            if not followed.readers:
                self._followed.pop(run.id, None)

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL if self._followed else None):
                    await self._look.wait()
            self._look.clear()
            try:
                await self._look_at()
            except Exception as error:  # noqa: BLE001 - the database may be unavailable for a while
                _log.warning("cannot query the database of runs: %s", str(error).partition("\n")[0])
                await asyncio.sleep(_POLL)

    async def _look_at(self) -> None:
        followed = {one.reader.segment: one for one in self._followed.values() if one.reader and not one.over}
        if not followed:
            return
        heads = await self._runs.heads(list(followed))
        changed = [
            (one, (segment, heads[segment][0]))
            for segment, one in followed.items()
            if segment in heads and (segment, heads[segment]) != one.head
        ]
        for segment, one in followed.items():
            one.head = (segment, heads[segment]) if segment in heads else None
        await asyncio.gather(*(self._refresh(one, status) for one, status in changed))
        for one in (one for segment, one in followed.items() if segment not in heads):
            one.end(RunError(f"the run {one.id} was deleted", "unknown"))

    async def _refresh(self, one: Following, status: tuple[str, str]) -> None:
        joined = one.joined
        try:
            async with self._reading:
                # The state before the events, so that the end is told after all of them.
                run = one.run if one.status == status else await self._runs.get(one.id)
                assert one.reader is not None  # noqa: S101 - see _look_at
                one.add(await one.reader.more())
        except Exception as error:  # noqa: BLE001 - only this run's readers are affected
            one.end(error)
            return
        one.status = status
        if _seen(run) != _seen(one.run):
            one.states += 1
        one.run, one.over = run, run.over and one.reader.over
        if one.over and joined != one.joined:  # read again for who joined meanwhile, perhaps after a retry
            one.over, one.head, one.status = False, None, None
            self._look.set()
        one.wake()


def _seen(run: Run) -> tuple[str, str]:
    """What makes a new `state` event: the state and the question."""
    return run.state, run.question.digest if run.question else ""


def _sse(event: Stamped, place: Sequence | None = None) -> bytes:
    """The event encoded for the stream, with an id if it is recorded."""
    known = f"id: {place[0]}.{place[1]}\n" if place else ""
    kind = event.event.__struct_config__.tag
    return f"event: {kind}\n{known}data: ".encode() + msgspec.json.encode(event) + b"\n\n"


def _state(run: Run) -> bytes:
    """The run's current state, encoded for the stream."""
    return b"event: state\ndata: " + msgspec.json.encode(run_view(run)) + b"\n\n"


class Follower:
    """One reader's position in a followed run: after the event of that sequence, or at the start for None."""

    def __init__(self, followed: Following, after: Sequence | None) -> None:
        self._followed, self._after = followed, after
        self._next = self._live = self._states = 0
        self._dropped = followed.dropped
        self._begun = False

    def take(self) -> bytes:
        """The next events for this reader, about 64 KiB at a time; empty if there are none yet."""
        one = self._followed
        parts: list[bytes] = []
        if not self._begun:
            self._begun, self._states = True, one.states
            if not one.run.over:  # an ended run sends its state after all its events
                parts.append(_state(one.run))
            if self._after is None:
                started = RunStarted(message=one.run.message)
                parts.append(_sse(Stamped(run=one.id, agent=one.run.workflow, event=started)))
        size = 0
        while self._next < len(one.told) and size < _AT_ONCE:
            sequence, data = one.told[self._next]
            self._next += 1
            if self._after is None or sequence > self._after:
                parts.append(data)
                size += len(data)
        if self._next < len(one.told):
            return b"".join(parts)
        if self._dropped != one.dropped:
            self._dropped, self._live = one.dropped, 0
        while self._hears and size < _AT_ONCE:
            data = one.live[self._live][1]
            self._live += 1
            parts.append(data)
            size += len(data)
        if self._states != one.states or (one.over and one.problem is None):
            self._states = one.states
            parts.append(_state(one.run))
        return b"".join(parts)

    @property
    def more(self) -> bool:
        """Whether more events are available now."""
        return self._next < len(self._followed.told) or self._hears

    @property
    def _hears(self) -> bool:
        """Whether there is a live event that comes next."""
        one = self._followed
        return self._live < len(one.live) and one.live[self._live][0] <= one.last

    @property
    def done(self) -> bool:
        """Whether everything was sent and the run has ended."""
        return self._followed.over and self._next == len(self._followed.told)

    @property
    def news(self) -> bool:
        """Whether any event is recorded after the position at which the reader started."""
        return any(self._after is None or sequence > self._after for sequence, _ in self._followed.told)
