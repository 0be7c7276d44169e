"""Before a run: its model is fetched, loaded, asked what it is; all of that ends when the run is cancelled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from returns.result import Failure, Result

from forge import Finished, Halted, resume_journal, run
from forge.connection import Connection
from forge.interpreters.scripted import Scripted, call
from stages.halt import Cancelled
from tests.flows import Desk

LOOK, END = call("look", what="a"), call("finish", result="ok")


class Slow:
    """A backend that is never there (`where` is connect), or never knows what a prompt takes (`where` is count)."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.begun = asyncio.Event()
        self.closed = False

    async def wait(self) -> None:
        self.begun.set()
        await asyncio.Event().wait()

    async def _count(self, _: bytes) -> None:
        await self.wait()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        try:
            if self.where == "connect":
                await self.wait()
            async with Scripted([LOOK, END]).connect() as connection:
                yield replace(connection, count=self._count)
        finally:
            self.closed = True


def ended(result: Result[Finished, Halted]) -> Halted:
    assert isinstance(result, Failure)
    halted: Halted = result.failure()
    return halted


@pytest.mark.parametrize("where", ["connect", "count"])
@pytest.mark.parametrize("early", [True, False])
def test_cancelling_ends_what_comes_before_the_first_turn(where: str, tmp_path: Path, early: bool) -> None:
    journal = tmp_path / "run.jsonl"
    told: list[object] = []

    async def cancelled() -> tuple[Halted, bool]:
        slow, cancel = Slow(where), asyncio.Event()
        if early:
            cancel.set()
        running = asyncio.ensure_future(
            run(Desk().workflow, "Go.", backend=slow, cancel=cancel, journal=str(journal), observer=told.append)
        )
        await slow.begun.wait()
        cancel.set()
        return ended(await running), slow.closed

    halted, closed = asyncio.run(cancelled())
    assert halted.halt == Cancelled(turns=0, completed=())
    assert closed, "what the backend held is let go"
    assert not journal.exists()
    assert len(halted.state.history) == 2, "it can be resumed from here"
    assert len(told) == 3, "two messages and the end"


def test_a_server_that_never_says_what_it_is_and_a_run_that_is_resumed(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"

    async def cancelled() -> Halted:
        cancel, over = asyncio.Event(), asyncio.Event()

        async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            cancel.set()
            await over.wait()
            writer.close()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            halted = ended(await resume_journal(Desk().workflow, journal, backend=address, cancel=cancel))
            over.set()
            return halted

    asyncio.run(run(Desk().workflow, "Go.", backend=Scripted([LOOK, *["Hm."] * 9]), journal=str(journal)))
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-2]))  # as if it had been cut short
    before = journal.read_bytes()
    halted = asyncio.run(cancelled())
    assert isinstance(halted.halt, Cancelled)
    assert halted.halt.completed == ("look",)
    assert journal.read_bytes() == before


def test_a_time_out_of_the_backend_s_own_is_not_taken_for_it() -> None:
    class Late:
        @asynccontextmanager
        async def connect(self) -> AsyncIterator[Connection]:
            yield await too_late()

    async def too_late() -> Connection:
        raise TimeoutError("too late")

    with pytest.raises(TimeoutError, match="too late"):
        asyncio.run(run(Desk().workflow, "Go.", backend=Late(), cancel=asyncio.Event()))
