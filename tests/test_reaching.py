"""Before a run: its model is fetched, loaded, asked what it is; all of that ends when the run is cancelled."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace
from returns.result import Failure, Result

from forge import Finished, Halted, resume_journal, run, run_sync
from forge.connection import Connection
from forge.errors import CallbackError
from forge.interpreters.scripted import Scripted, call
from forge.workflow.stage_list import STAGE_NAMES
from stages import Stage, on
from stages.effect import Send
from stages.halt import Cancelled
from stages.state import Awaiting, Folded, State
from tests.flows import Desk
from tests.heard import heard_by

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
            run(
                Desk().workflow,
                "Go.",
                backend=slow,
                cancel=cancel,
                journal=str(journal),
                on_event=heard_by(told.append),
            )
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


MAIL = "ann@example.org"


def without_mail(text: str) -> str:
    return text.replace(MAIL, "[e-mail]")


@on(Folded)
def hidden_in_the_view(state: State, phase: Folded) -> State:
    return state.to(replace(phase, view=tuple(replace(m, text=without_mail(m.text)) for m in phase.view)))


@on(Awaiting)
def hidden_in_the_request(state: State, phase: Awaiting) -> State:
    if not isinstance(phase.effect, Send):
        return state
    messages = tuple(Raw(bytes(m).replace(MAIL.encode(), b"[e-mail]")) for m in phase.effect.request.messages)
    return state.to(
        replace(phase, effect=replace(phase.effect, request=replace(phase.effect.request, messages=messages)))
    )


class Counting(Scripted):
    """A scripted model whose server counts what a request takes, and that keeps what it was given to count."""

    counted: tuple[bytes, ...] = ()

    async def count(self, body: bytes) -> int:
        self.counted = (*self.counted, body)
        return len(body) // 4

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        async with super().connect() as connection:
            yield replace(connection, count=self.count)


PLACES: list[tuple[Stage, int]] = [(hidden_in_the_view, 2), (hidden_in_the_request, 4)]


@pytest.mark.parametrize(("stage", "place"), PLACES)
def test_what_a_stage_keeps_from_the_model_is_not_counted_either(stage: Stage, place: int) -> None:
    model = Counting([LOOK, END])
    stages = [*STAGE_NAMES[:place], stage, *STAGE_NAMES[place:]]
    workflow = dataclasses.replace(Desk().workflow, stages=stages)
    run_sync(workflow, f"Write to {MAIL}.", backend=model).unwrap()
    (counted,) = model.counted
    assert b"[e-mail]" in counted
    assert counted == model.requests[0]


def test_a_stage_that_fails_on_the_first_request_fails_in_the_run_with_its_state(tmp_path: Path) -> None:
    @on(Folded)
    def wrong(state: State, _: Folded) -> State:
        raise ValueError("no such view")

    workflow = dataclasses.replace(Desk().workflow, stages=[*STAGE_NAMES[:2], wrong, *STAGE_NAMES[2:]])
    model, journal = Counting([LOOK, END]), tmp_path / "run.jsonl"
    with pytest.raises(CallbackError, match="no such view") as raised:
        run_sync(workflow, "Go.", backend=model, journal=str(journal))
    assert raised.value.state is not None
    assert journal.exists()
    assert model.counted == ()
