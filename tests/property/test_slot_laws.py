"""Laws of the slot worker: whatever is submitted, cancelled, preempted and stopped, every job ends exactly once."""

import asyncio
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from forge.backends.slot import SlotWorker, WorkerStopped
from tests.backends.test_slot_worker import settle


class Submit(Struct, frozen=True):
    priority: int
    preemptible: bool
    stubborn: bool  # it doesn't leave when it is told to, and finishes instead


class Do(Struct, frozen=True):
    what: Literal["finish", "fail", "cancel", "stop"]
    which: int
    settled: bool


PRIORITY = st.integers(0, 3)
STEPS = st.lists(
    st.builds(Submit, PRIORITY, st.booleans(), st.integers(0, 4).map(lambda n: n == 0))
    | st.builds(
        Do,
        st.sampled_from(["finish", "fail", "cancel", "cancel", "finish", "finish"]),
        st.integers(0, 30),
        st.booleans(),
    ),
    max_size=40,
)


class Job:
    def __init__(self, world: "World", kind: Submit, number: int) -> None:
        self.world, self.kind, self.number = world, kind, number
        self.end: asyncio.Future[int] | None = None
        self.caller = asyncio.create_task(
            world.worker.submit(self.run, priority=kind.priority, preemptible=kind.preemptible)
        )

    async def run(self) -> int:
        self.world.begin(self)
        self.end = asyncio.get_running_loop().create_future()
        try:
            return await self.end
        except asyncio.CancelledError:
            if self.kind.stubborn:
                return self.number
            raise
        finally:
            self.end = None
            self.world.active = None


class World:
    def __init__(self) -> None:
        self.worker = SlotWorker()
        self.active: Job | None = None
        self.jobs: list[Job] = []
        self.queued = 0

    def begin(self, job: Job) -> None:
        assert self.active is None, "two jobs at a time"
        self.active = job
        # The slot may have been given away just before somebody came who would have gone first.
        queued = [other for other in self.jobs[: self.queued] if not other.caller.done()]
        first = [other for other in queued if (other.kind.priority, other.number) < (job.kind.priority, job.number)]
        assert all(other.caller.cancelling() for other in first), "somebody was overtaken"

    def do(self, step: Do) -> None:
        job = self.jobs[step.which % len(self.jobs)] if self.jobs else None
        end = self.active.end if self.active else None
        if step.what == "cancel" and job:
            job.caller.cancel()
        elif end and not end.done() and self.active and step.what == "finish":
            end.set_result(self.active.number)
        elif end and not end.done() and step.what == "fail":
            end.set_exception(ValueError("failed"))

    def check_settled(self) -> None:
        waiting = [job for job in self.jobs if not job.caller.done()]
        assert (self.active is None) == (not waiting), "the slot is idle and somebody waits"
        if self.active and self.active.kind.preemptible:
            assert self.active.kind.priority == min(job.kind.priority for job in waiting), "nobody made room"


def outcome(job: Job) -> str:
    assert job.caller.done(), "a caller was left hanging"
    if job.caller.cancelled():
        return "cancelled"
    match job.caller.exception():
        case None:
            assert job.caller.result() == job.number
            return "succeeded"
        case WorkerStopped():
            return "stopped"
        case ValueError():
            return "failed"
        case other:
            raise AssertionError(other)


@given(STEPS, st.booleans())
def test_every_job_ends_exactly_once(steps: list[Submit | Do], drain: bool) -> None:
    async def go() -> None:
        world = World()
        for step in steps:
            if isinstance(step, Submit):
                world.jobs.append(Job(world, step, len(world.jobs)))
                await asyncio.sleep(0)
                continue
            world.do(step)
            if step.settled:
                await settle()
                world.queued = len(world.jobs)
                world.check_settled()
        for _ in world.jobs if drain else []:
            await settle()
            world.do(Do("finish", 0, settled=True))
        await settle()
        await world.worker.stop()
        await settle()
        assert world.active is None
        outcomes = [outcome(job) for job in world.jobs]
        counts = world.worker.statistics
        # A caller that is cancelled before its first step has submitted nothing.
        unborn = len(world.jobs) - counts.submitted
        assert outcomes.count("cancelled") == counts.cancelled + unborn
        assert (outcomes.count("succeeded"), outcomes.count("failed")) == (counts.succeeded, counts.failed)
        assert outcomes.count("stopped") == counts.stopped
        assert not drain or counts.stopped == 0
        assert (counts.waiting, counts.running) == (0, 0)

    asyncio.run(go())
