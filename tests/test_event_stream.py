"""A run as an async stream: the same events as the observer's, then the outcome; leaving it cancels in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from returns.result import Success

from forge import Finished, Halted, Limits, Workflow, resume_journal, run_sync, stream, tool
from forge.errors import WatcherError
from forge.interpreters.scripted import Line, Scripted, ScriptError, call
from forge.runtime.event_stream import WAITING_LIMIT
from forge.testing import assert_answered
from stages.events import CallsAccepted, MessageAdded, Stamped, ToolProgressed, TurnStarted
from stages.events import RunFinished as FinishedEvent
from stages.halt import Cancelled
from stages.wire.deltas import CallStarted, Delta, TextDelta
from tests.flows import Desk

LOOK, FINISH = call("look", what="a"), call("finish", result="ok")
SCRIPT: list[Line] = ["Hm.", LOOK, FINISH]


async def whole(workflow: Workflow, script: list[Line]) -> list[object]:
    told = stream(workflow, "Go.", backend=Scripted(script))
    return [one.event if isinstance(one, Stamped) else one async for one in told]


def test_it_gives_the_events_and_the_deltas_and_ends_with_the_outcome() -> None:
    seen: list[Stamped] = []
    deltas: list[Delta] = []
    ended = run_sync(
        Desk().workflow, "Go.", backend=Scripted(SCRIPT), on_event=seen.append, on_chunk=deltas.append
    ).unwrap()
    *events, last = asyncio.run(whole(Desk().workflow, SCRIPT))
    assert [type(event) for event in events] == [type(stamped.event) for stamped in seen]
    assert [stamped.event for stamped in seen if isinstance(stamped.event, Delta)] == deltas
    assert isinstance(events[-1], FinishedEvent)
    assert isinstance(last, Finished)
    assert last.value == ended.value == "ok"
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hm."]
    assert [e.name for e in events if isinstance(e, CallStarted)] == ["look", "finish"]


async def test_the_users_own_observers_are_told_as_well_and_their_errors_are_theirs() -> None:
    heard: list[object] = []
    run = stream(Desk().workflow, "Go.", backend=Scripted(SCRIPT), on_event=heard.append, on_message=heard.append)
    async for _ in run:
        pass
    with pytest.raises(WatcherError, match="on_chunk failed"):
        async for _ in stream(Desk().workflow, "Go.", backend=Scripted(SCRIPT), on_chunk=lambda delta: 1 / 0):  # type: ignore[arg-type, return-value]
            pass
    assert any(isinstance(one, Stamped) and isinstance(one.event, TurnStarted) for one in heard)
    assert sum(isinstance(one, Stamped) and isinstance(one.event, MessageAdded) for one in heard) >= 6


async def test_what_run_raises_comes_out_of_the_loop_after_the_events_before_it() -> None:
    seen: list[object] = []
    with pytest.raises(ScriptError):  # noqa: PT012 - what came before it is looked at too
        async for stamped in stream(Desk().workflow, "Go.", backend=Scripted([LOOK])):
            seen.append(stamped.event if isinstance(stamped, Stamped) else stamped)  # noqa: PERF401 - it raises on the way
    assert any(isinstance(event, CallsAccepted) for event in seen)


def test_leaving_early_cancels_in_order_and_the_journal_loses_nothing(tmp_path: Path) -> None:
    desk, journal = Desk(), tmp_path / "run.jsonl"

    async def left() -> None:
        write = call("write", what="a", text="x")
        script = Scripted([LOOK, write, FINISH])
        async with aclosing(stream(desk.workflow, "Go.", backend=script, journal=str(journal))) as events:
            async for stamped in events:
                match stamped:
                    case Stamped(event=CallsAccepted(calls=[one])) if one.name == "write":
                        break
                    case _:
                        pass
        assert len(asyncio.all_tasks()) == 1, "the run goes on behind the reader's back"

    asyncio.run(left())
    ended = asyncio.run(resume_journal(desk.workflow, journal, backend=Scripted([FINISH, FINISH])))
    state = ended.unwrap().state if isinstance(ended, Success) else ended.failure().state
    assert_answered(state.history)
    assert desk.log.count("look a") == 1
    assert desk.log.count("write a") <= 1


async def test_a_break_without_closing_ends_the_run_with_the_program() -> None:
    ended: list[Stamped] = []
    async for _ in stream(Desk().workflow, "Go.", backend=Scripted(SCRIPT), on_event=ended.append):
        break
    assert not any(isinstance(stamped.event, FinishedEvent) for stamped in ended)


def test_cancel_and_a_cancelled_reader_end_it_too() -> None:
    async def cancelled() -> object:
        cancel = asyncio.Event()
        last: object = None
        async for event in stream(Desk().workflow, "Go.", backend=Scripted(SCRIPT), cancel=cancel):
            last = event
            if isinstance(event, Stamped) and isinstance(event.event, TurnStarted):
                cancel.set()
        return last

    last = asyncio.run(cancelled())
    assert isinstance(last, Halted)
    assert isinstance(last.halt, Cancelled)


async def reads(events: AsyncIterator[object], number: int) -> list[object]:
    return [await anext(events) for _ in range(number)]


def test_the_run_waits_for_its_reader() -> None:
    """A thousand turns, and a reader that stops after some: no more is asked of the model than the line holds."""

    @tool(effect="read", repeatable=True)
    def look() -> str:
        """Look."""
        return "7"

    workflow = Workflow("w", tools=[look], on_text="accept", limits=Limits(max_iterations=1_000, max_repeats=None))

    async def slow() -> int:
        model = Scripted([call("look")] * 1_000)
        async with aclosing(stream(workflow, "Go.", backend=model)) as events:
            await reads(events, 5)
            for _ in range(5_000):
                await asyncio.sleep(0)
            return len(model.requests)

    assert asyncio.run(slow()) < WAITING_LIMIT


def test_progress_that_nobody_reads_does_not_pile_up() -> None:
    @tool
    def work():  # type: ignore[no-untyped-def]  # noqa: ANN202 - as users write it
        """Work."""
        yield from range(4 * WAITING_LIMIT)

    workflow = Workflow("w", tools=[work], terminal_tool="work")

    async def late() -> list[object]:
        async with aclosing(stream(workflow, "Go.", backend=Scripted([call("work")]))) as events:
            first = await anext(events)
            while True:
                rest = [event async for event in events]
                return [one.event if isinstance(one, Stamped) else one for one in (first, *rest)]

    told = asyncio.run(late())
    progress = [event for event in told if isinstance(event, ToolProgressed)]
    assert progress[-1].text == str(4 * WAITING_LIMIT - 1)
    assert isinstance(told[-1], Finished)
