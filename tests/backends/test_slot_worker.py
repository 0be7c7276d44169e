"""SlotWorker: one model call at a time, by priority; nobody is left hanging."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from forge import run
from forge.backends.slot import SlotWorker
from forge.callbacks import OnChunk
from forge.connection import Connection
from forge.interpreters.scripted import Scripted, call
from stages.effect import Replied, Reply, Request, Send
from tests.flows import Desk

ASKED = Send(request=Request(), turn=1)


class Slow:
    """A backend whose calls end when the test says so; `begun` are those that have the slot, in order."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Future[None]] = {}

    def named(self, name: str) -> "Named":
        return Named(self, name)

    async def answer(self, name: str) -> Replied:
        self.begun.append(name)
        self.ends[name] = asyncio.get_running_loop().create_future()
        try:
            await self.ends[name]
        finally:
            del self.ends[name]
        return Replied(reply=Reply(text=name))


class Named:
    def __init__(self, slow: Slow, name: str) -> None:
        self.slow, self.name = slow, name

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async def send(_: Send) -> Replied:
            return await self.slow.answer(self.name)

        async def stream(_: Send, __: OnChunk) -> Replied:
            return await self.slow.answer(self.name)

        async with Scripted([]).connect() as connection:
            yield replace(connection, send=send, stream=stream)


async def settle() -> None:
    """Let every task go as far as it can without the test."""
    for _ in range(20):
        await asyncio.sleep(0)


def asking(worker: SlotWorker, slow: Slow, name: str, priority: int, *, streamed: bool = False) -> asyncio.Task[object]:
    async def go() -> object:
        async with worker.share(slow.named(name), priority=priority).connect() as connection:
            send = connection.told(lambda _: None) if streamed else connection.send
            return await send(ASKED)

    return asyncio.create_task(go())


async def test_lower_numbers_go_first_and_equal_ones_in_their_order() -> None:
    worker, slow = SlotWorker(), Slow()
    tasks = []
    for name, priority in (("first", 5), ("late", 9), ("b", 5), ("c", 5), ("urgent", 1)):
        tasks.append(asking(worker, slow, name, priority, streamed=name == "b"))
        await settle()
    while slow.ends:
        assert len(slow.ends) == 1, "two calls at a time"
        next(iter(slow.ends.values())).set_result(None)
        await settle()
    assert slow.begun == ["first", "urgent", "b", "c", "late"]
    assert all(task.done() for task in tasks)


def test_runs_share_a_slot_call_by_call() -> None:
    async def go() -> list[object]:
        worker = SlotWorker()
        scripts = [[call("look", what="a"), call("finish", result=f"flow {number}")] for number in range(3)]
        backends = [worker.share(Scripted(script)) for script in scripts]
        results = await asyncio.gather(*(run(Desk().workflow, "Go.", backend=backend) for backend in backends))
        return [result.unwrap().value for result in results]

    assert asyncio.run(go()) == ["flow 0", "flow 1", "flow 2"]


STEP = st.tuples(st.sampled_from(["ask", "ask", "end", "fail", "cancel"]), st.integers(0, 20), st.booleans())


@given(st.lists(STEP, max_size=40))
def test_whatever_ends_fails_and_is_cancelled_the_slot_goes_on(steps: list[tuple[str, int, bool]]) -> None:
    async def go() -> None:
        worker, slow, tasks = SlotWorker(), Slow(), list[asyncio.Task[object]]()

        def end(*, fails: bool) -> None:
            for future in slow.ends.values():
                if not future.done():
                    future.set_exception(ValueError) if fails else future.set_result(None)

        for what, number, settled in steps:
            match what:
                case "ask":
                    tasks.append(asking(worker, slow, str(len(tasks)), number % 4))
                case "cancel" if tasks:
                    tasks[number % len(tasks)].cancel()
                case _:
                    end(fails=what == "fail")
            if settled:
                await settle()
            assert len(slow.ends) <= 1, "two calls at a time"
        for _ in range(len(tasks) + 1):
            await settle()
            end(fails=False)
        await settle()
        assert all(task.done() for task in tasks), "a call was left hanging"
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(go())
