"""SlotWorker: one job at a time, by priority; nobody is left hanging."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

import pytest
from msgspec import structs

from forge import run, run_sync
from forge.backends.slot import SlotWorker, Statistics, WorkerStopped
from forge.callbacks import OnChunk
from forge.connection import Connection
from forge.interpreters.scripted import Scripted, call
from stages.effect import Replied, Reply, Request, Send
from stages.halt import BackendFailed
from stages.wire.deltas import Delta, Retry, TextDelta
from tests.flows import Desk


class Bench:
    """Jobs that end when the test says so; `log` is what happened to each, in order."""

    def __init__(self) -> None:
        self.worker = SlotWorker()
        self.log: list[str] = []
        self.ends: dict[str, asyncio.Future[str]] = {}

    async def job(self, name: str) -> str:
        self.log.append(f"{name} begins")
        self.ends[name] = asyncio.get_running_loop().create_future()
        try:
            return await self.ends[name]
        except asyncio.CancelledError:
            self.log.append(f"{name} leaves")
            raise

    def submit(self, name: str, priority: int = 0, *, preemptible: bool = False) -> asyncio.Task[str]:
        return asyncio.create_task(
            self.worker.submit(lambda: self.job(name), priority=priority, preemptible=preemptible)
        )

    async def end(self, name: str) -> None:
        self.ends[name].set_result(f"{name} done")
        await settle()

    @property
    def began(self) -> list[str]:
        return [line.split()[0] for line in self.log if line.endswith("begins")]


async def settle() -> None:
    """Let every task go as far as it can without the test."""
    for _ in range(20):
        await asyncio.sleep(0)


def bench(check: Callable[[Bench], Coroutine[object, object, None]]) -> Callable[[], None]:
    def wrapped() -> None:
        asyncio.run(check(Bench()))

    wrapped.__name__ = check.__name__
    wrapped.__doc__ = check.__doc__
    return wrapped


@bench
async def test_lower_numbers_go_first_and_equal_ones_in_their_order(at: Bench) -> None:
    tasks = []
    for name, priority in [("a", 5), ("b", 5), ("c", 1), ("d", 5), ("e", 1)]:
        tasks.append(at.submit(name, priority))
        await settle()
    for name in "acebd":
        await at.end(name)
    assert at.began == [*"acebd"]
    assert await asyncio.gather(*tasks) == [f"{name} done" for name in "abcde"]
    assert at.worker.statistics == Statistics(submitted=5, succeeded=5)


@bench
async def test_a_running_job_makes_room_if_it_says_so_and_is_next_of_its_priority(at: Bench) -> None:
    low = at.submit("low", 5, preemptible=True)
    await settle()
    later = at.submit("later", 5)
    high = at.submit("high", 1)
    await settle()
    assert at.log == ["low begins", "low leaves", "high begins"]
    assert not low.done()
    for name in ["high", "low", "later"]:
        await at.end(name)
    assert [await high, await low, await later] == ["high done", "low done", "later done"]
    assert at.began == ["low", "high", "low", "later"]
    assert at.worker.statistics == Statistics(submitted=3, succeeded=3, preemptions=1)


@bench
async def test_a_job_that_may_not_be_repeated_is_left_to_finish(at: Bench) -> None:
    low = at.submit("low", 5)
    await settle()
    high = at.submit("high", 1)
    await settle()
    assert at.began == ["low"]
    await at.end("low")
    await at.end("high")
    assert [await low, await high] == ["low done", "high done"]


@bench
async def test_equal_priority_never_preempts(at: Bench) -> None:
    first = at.submit("first", 1, preemptible=True)
    await settle()
    second = at.submit("second", 1)
    await settle()
    assert at.began == ["first"]
    await at.worker.stop()
    for task in (first, second):
        with pytest.raises(WorkerStopped):
            await task


@bench
async def test_an_exception_reaches_the_caller_and_frees_the_slot(at: Bench) -> None:
    bad = at.submit("bad")
    good = at.submit("good")
    await settle()
    at.ends["bad"].set_exception(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await bad
    await settle()
    await at.end("good")
    assert await good == "good done"
    assert at.worker.statistics == Statistics(submitted=2, succeeded=1, failed=1)


@bench
async def test_stop_leaves_no_caller_hanging(at: Bench) -> None:
    """It used to leave them waiting for ever."""
    tasks = [at.submit("running"), at.submit("waiting"), at.submit("urgent", -1)]
    await settle()
    await at.worker.stop()
    for task in tasks:
        with pytest.raises(WorkerStopped, match="stopped"):
            await task
    with pytest.raises(WorkerStopped):
        await at.submit("late")
    assert at.log == ["running begins", "running leaves"]
    assert at.worker.statistics == Statistics(submitted=3, stopped=3)


@bench
async def test_a_caller_that_is_cancelled_takes_its_job_along(at: Bench) -> None:
    running, waiting, last = at.submit("running"), at.submit("waiting"), at.submit("last")
    await settle()
    waiting.cancel()
    running.cancel()
    await settle()
    assert at.log == ["running begins", "running leaves", "last begins"]
    await at.end("last")
    assert (running.cancelled(), waiting.cancelled(), await last) == (True, True, "last done")
    assert at.worker.statistics == Statistics(submitted=3, succeeded=1, cancelled=2)


@bench
async def test_the_slot_is_free_only_when_a_cancelled_job_has_wound_up(at: Bench) -> None:
    closed = asyncio.Event()

    async def slow_to_close() -> None:
        try:
            await asyncio.Future()
        finally:
            while not closed.is_set():
                with suppress(asyncio.CancelledError):
                    await closed.wait()

    first = asyncio.create_task(at.worker.submit(slow_to_close))
    second = at.submit("second")
    await settle()
    for _ in range(2):  # who cancels twice doesn't get the slot sooner
        first.cancel()
        await settle()
        assert at.began == []
    closed.set()
    await settle()
    assert at.began == ["second"]
    await at.worker.stop()
    assert first.cancelled()
    with pytest.raises(WorkerStopped):
        await second


class Slot:
    """A share of the worker for a workflow of two calls."""

    def __init__(self, worker: SlotWorker, name: str) -> None:
        replies = [call("look", what="a"), call("finish", result=name)]
        self.backend = worker.share(Scripted(replies))


def test_workflows_share_a_slot_call_by_call() -> None:
    async def go() -> tuple[list[object], Statistics]:
        async with SlotWorker() as worker:
            flows = [Slot(worker, f"flow {number}") for number in range(3)]
            results = await asyncio.gather(*(run(Desk().workflow, "Go.", backend=flow.backend) for flow in flows))
            return [result.unwrap().value for result in results], worker.statistics

    values, statistics = asyncio.run(go())
    assert values == ["flow 0", "flow 1", "flow 2"]
    assert statistics == Statistics(submitted=6, succeeded=6)


def test_a_run_on_a_stopped_worker_ends_typed() -> None:
    worker = SlotWorker()
    asyncio.run(worker.stop())
    halt = run_sync(Desk().workflow, "Go.", backend=worker.share(Scripted([]))).failure().halt
    assert isinstance(halt, BackendFailed)
    assert "stopped" in halt.fault.detail


class Streaming:
    """A backend whose first stream breaks off in the middle only when it is told to leave."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.requests = 0

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with Scripted([]).connect() as connection:
            yield structs.replace(connection, stream=self.stream)

    async def stream(self, effect: Send, on_chunk: OnChunk) -> Replied:
        self.requests += 1
        on_chunk(TextDelta(text=f"request {self.requests}"))
        self.begun.set()
        if self.requests == 1:
            await asyncio.Future()
        return Replied(reply=Reply(text="done"))


@bench
async def test_a_watcher_is_told_to_forget_a_reply_that_made_room(at: Bench) -> None:
    backend, told = Streaming(), list[Delta]()
    async with at.worker.share(backend, priority=9).connect() as connection:
        watched = asyncio.ensure_future(connection.told(told.append)(Send(request=Request(), turn=1)))
        await backend.begun.wait()
        urgent = at.submit("urgent", 1)
        await settle()
        await at.end("urgent")
        await asyncio.gather(urgent, watched)
    assert [type(delta) for delta in told] == [TextDelta, Retry, TextDelta]
    assert told[2] == TextDelta(text="request 2")
