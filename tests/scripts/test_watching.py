"""Cancelling, observing, approving: what happens to a run from outside."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from returns.result import Result, Success

from forge import Finished, Halted, Limits, Workflow, run, run_sync, tool
from forge.connection import Connection, Setup
from forge.errors import CallbackError
from forge.interpreters.scripted import Scripted, call, calls
from forge.testing import assert_answered
from stages import events
from stages.effect import Replied, Send, Undelivered
from stages.events import Event
from stages.halt import Cancelled
from stages.message import Message, Tool, User
from stages.state import Compaction
from tests.flows import Desk, finish
from tests.heard import heard_by

LOOK = call("look", what="a")
FINISH = call("finish", result="ok")


def test_observers_hear_each_transition_in_order() -> None:
    heard: list[Event] = []
    run_sync(Desk().workflow, "Go.", backend=Scripted(["Hm.", LOOK, FINISH]), on_event=heard_by(heard.append))
    assert [type(event).__name__ for event in heard] == [
        *["MessageAdded", "MessageAdded"],
        *["TurnStarted", "ModelReplied", "MessageAdded", "MessageAdded", "Nudged"],
        *["TurnStarted", "ModelReplied", "CallsAccepted", "ToolsReturned", "MessageAdded", "MessageAdded"],
        *[
            "TurnStarted",
            "ModelReplied",
            "CallsAccepted",
            "ToolsReturned",
            "MessageAdded",
            "MessageAdded",
            "RunFinished",
        ],
    ]
    first = heard[2]
    assert isinstance(first, events.TurnStarted)
    assert first.context_tokens == 8192 - 1024
    assert first.prompt_tokens > 0


def test_on_message_hears_each_new_message_once_and_nothing_of_an_earlier_conversation() -> None:
    heard: list[Message] = []
    first = run_sync(Desk().workflow, "Go.", backend=Scripted(["Hm.", LOOK, FINISH]), on_message=heard.append).unwrap()
    assert tuple(heard) == first.state.history
    again: list[Message] = []
    second = run_sync(
        Desk().workflow,
        "Again.",
        backend=Scripted([LOOK, FINISH]),
        initial_messages=first.state.history,
        on_message=again.append,
    ).unwrap()
    assert first.state.history + tuple(again) == second.state.history


def test_on_compact_hears_each_compaction() -> None:
    heard: list[Compaction] = []
    desk = Desk(limits=Limits(max_iterations=30))
    script = [*(call("look", what="a" * 200) for _ in range(20)), FINISH]
    done = run_sync(desk.workflow, "Go.", backend=Scripted(script, context_tokens=2600), on_compact=heard.append)
    assert heard
    assert tuple(heard) == done.unwrap().state.ledger.compactions


def test_one_that_fails_at_every_event_is_reported_with_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Event] = []

    def broken(event: Event) -> None:
        heard.append(event)
        raise ValueError("no more ink")

    result = run_sync(Desk().workflow, "Go.", backend=Scripted([LOOK] * 6 + [FINISH]), on_event=heard_by(broken))
    assert isinstance(result, Success)
    assert len(heard) > 16
    assert caplog.text.count("Traceback") == 1
    told = [record.getMessage() for record in caplog.records if "on_event failed" in record.getMessage()]
    assert len(told) == 1


class Slow:
    """A backend whose model never answers, and that knows whether it was stopped."""

    def __init__(self) -> None:
        self.asked, self.stopped = asyncio.Event(), asyncio.Event()

    async def send(self, effect: Send) -> Replied | Undelivered:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        yield Connection(Setup(context_tokens=4096), self.send)


async def test_cancelling_stops_a_model_call_at_once() -> None:
    model, cancel = Slow(), asyncio.Event()
    running = asyncio.ensure_future(run(Desk().workflow, "Go.", backend=model, cancel=cancel))
    await model.asked.wait()
    cancel.set()
    assert (await running).failure().halt == Cancelled(turns=1, completed=())
    assert model.stopped.is_set()


async def test_a_task_that_is_cancelled_takes_its_model_call_with_it() -> None:
    model = Slow()
    running = asyncio.ensure_future(run(Desk().workflow, "Go.", backend=model, cancel=asyncio.Event()))
    await model.asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.stopped.is_set()


async def test_cancelling_during_a_tool_answers_its_call() -> None:
    started, cancel = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def hang(what: str) -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return what

    workflow = Workflow("slow", tools=[hang, finish], terminal_tool="finish")
    batch = calls(("hang", {"what": "a"}), ("hang", {"what": "b"}))
    running = asyncio.ensure_future(run(workflow, "Go.", backend=Scripted([batch]), cancel=cancel))
    await started.wait()
    cancel.set()
    halted = (await running).failure()
    assert halted.halt == Cancelled(turns=1, completed=())
    assert_answered(halted.state.history)
    assert ["interrupted" in m.text for m in halted.state.history if isinstance(m, Tool)] == [True, True]


async def test_a_run_that_is_cancelled_before_it_begins_sends_nothing() -> None:
    cancel, model = asyncio.Event(), Scripted([LOOK])
    cancel.set()
    halted = (await run(Desk().workflow, "Go.", backend=model, cancel=cancel)).failure()
    assert halted.halt == Cancelled(turns=0, completed=())
    assert model.requests == ()


async def test_sync_tools_do_not_block_the_event_loop() -> None:
    """A sync tool used to stop everything else."""
    entered, release = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Wait until someone else on the loop lets it go."""
        entered.set()
        assert release.wait(30)
        return "released"

    workflow = Workflow("wait", tools=[wait], terminal_tool="wait")
    running = asyncio.ensure_future(run(workflow, "Go.", backend=Scripted([call("wait")])))
    await asyncio.to_thread(entered.wait, 30)
    release.set()
    assert (await running).unwrap().value == "released"


@pytest.mark.parametrize("limit", [None, 600.0])
async def test_a_tool_that_will_not_be_stopped_is_left_behind(
    limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.runtime.loop._GRACE", 0.01)
    cancel = asyncio.Event()

    @tool(timeout=limit)
    async def stubborn() -> None:
        """Go on, whatever is said."""
        cancel.set()
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    workflow = Workflow("stubborn", tools=[stubborn], terminal_tool="stubborn")
    halted = (await run(workflow, "Go.", backend=Scripted([call("stubborn")]), cancel=cancel)).failure()
    assert halted.halt == Cancelled(turns=1, completed=())
    assert any("[InDoubt] stubborn was started" in m.text for m in halted.state.history if isinstance(m, Tool))


def stopping(at: str) -> tuple[Result[Finished, Halted], list[str]]:
    """A run that is cancelled by its tool `at`, in the middle of it; and the tools that ran."""

    async def go() -> tuple[Result[Finished, Halted], list[str]]:
        cancel, log = asyncio.Event(), list[str]()

        def ran(name: str) -> str:
            log.append(name)
            if name == at:
                cancel.set()
            return name

        @tool(effect="read")
        async def look(page: int) -> str:
            """Look."""
            return ran("look")

        @tool
        async def finish() -> str:
            """Finish."""
            return ran("finish")

        workflow = Workflow("stopping", tools=[look, finish], terminal_tool="finish")
        script = Scripted([calls(("look", {"page": 1}), ("look", {"page": 2}), ("finish", {}))])
        return await run(workflow, "Go.", backend=script, cancel=cancel), log

    return asyncio.run(go())


def test_what_came_at_the_moment_of_the_cancellation_is_not_thrown_away() -> None:
    result, log = stopping("look")
    halted = result.failure()
    assert halted.halt == Cancelled(turns=1, completed=("look",))
    texts = [m.text for m in halted.state.history if isinstance(m, Tool)]
    assert texts == ["look", "look", "[NotRun] finish: the run was interrupted before it was started"]
    assert log == ["look", "look"]


def test_a_run_whose_last_call_succeeded_is_finished_cancelled_or_not() -> None:
    result, _ = stopping("finish")
    assert result.unwrap().value == "finish"


@pytest.mark.parametrize(
    ("said", "read"), [("Stop it.", ["Stop it."]), (["Stop", "it."], ["Stop", "it."]), (None, []), (5, []), ([5], [])]
)
def test_what_hear_returns_is_read_as_messages_and_no_result_is_lost_with_it(said: object, read: list[str]) -> None:
    desk = Desk()
    done = run_sync(desk.workflow, "Go.", backend=Scripted([LOOK, FINISH]), hear=lambda: said)  # type: ignore[arg-type, return-value]  # what people return
    assert [m.text for m in done.unwrap().state.history if isinstance(m, User)] == ["Go.", *read]
    assert desk.log[0] == "look a"


def test_a_keep_that_is_not_async_is_named() -> None:
    with pytest.raises(CallbackError, match=r"^keep, .*<lambda>, returned None; it must return Awaitable\. "):
        run_sync(Desk().workflow, "Go.", backend=Scripted(["a"]), keep=lambda _: None)  # type: ignore[arg-type, return-value]  # wrong on purpose
