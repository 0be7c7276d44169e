"""Cancelling, observing, approving: what happens to a run from outside."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from returns.result import Result, Success

from forge import Finished, Halted, Limits, Workflow, run, run_sync, tool
from forge.connection import Connection, Setup
from forge.interpreters.scripted import Scripted, call, calls
from forge.testing import assert_answered
from stages import events
from stages.effect import Approved, Ask, Rejected, Replied, Send, Undelivered
from stages.events import Event
from stages.halt import Cancelled
from stages.message import Message, Tool
from stages.state import Compaction, State
from tests.flows import Desk
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


def test_a_halt_is_observed_too() -> None:
    heard: list[Event] = []
    run_sync(
        Desk(limits=Limits(max_iterations=1)).workflow,
        "Go.",
        backend=Scripted(["Hm."]),
        on_event=heard_by(heard.append),
    )
    assert isinstance(heard[-1], events.RunHalted)


def test_an_observer_that_fails_is_reported_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: Event) -> None:
        raise ValueError("no more paper")

    result = run_sync(Desk().workflow, "Go.", backend=Scripted([LOOK, FINISH]), on_event=heard_by(broken))
    assert isinstance(result, Success)
    assert "on_event failed at the event MessageAdded" in caplog.text


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
    assert len(told) == len(heard).bit_length()
    assert "times by now: ValueError('no more ink')" in told[-1]


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

    @tool
    def finish() -> None:
        """Finish."""

    workflow = Workflow("slow", tools=[hang, finish], terminal_tool="finish")
    batch = calls(("hang", {"what": "a"}), ("hang", {"what": "b"}))
    running = asyncio.ensure_future(run(workflow, "Go.", backend=Scripted([batch]), cancel=cancel))
    await started.wait()
    cancel.set()
    halted = (await running).failure()
    assert halted.halt == Cancelled(turns=1, completed=())
    assert_answered(halted.state.history)
    assert ["cancelled" in m.text for m in halted.state.history if isinstance(m, Tool)] == [True, True]


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


def approved(script: Scripted, ask: Callable[[Ask], Approved | Rejected] | None) -> tuple[State, list[str]]:
    """The end of a run with a tool that needs approval, which this person decides on; and what was paid."""
    log: list[str] = []

    @tool(approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        log.append(f"pay {amount}")
        return "paid"

    @tool
    def finish() -> None:
        """Finish."""

    async def answer(effect: Ask) -> Approved | Rejected:
        assert ask is not None
        return ask(effect)

    flow = Workflow("payment", tools=[pay, finish], terminal_tool="finish")
    ended = run_sync(flow, "Pay.", backend=script, ask=answer if ask else None)
    return (ended.unwrap() if isinstance(ended, Success) else ended.failure()).state, log


def test_a_person_decides_on_each_call_that_needs_it() -> None:
    once, twice = call("pay", amount=500), calls(("pay", {"amount": 5}), ("pay", {"amount": 6}))
    _, log = approved(Scripted([once, call("finish")]), lambda a: Approved(digest=a.digest, edited='{"amount": 5}'))
    assert log == ["pay 5"], "an edited one runs as edited"
    no = "far too much"
    state, log = approved(Scripted([once, call("finish")]), lambda a: Rejected(digest=a.digest, reason=no))
    assert log == []
    assert any(no in m.text for m in state.history if isinstance(m, Tool)), "the model hears why"
    assert approved(Scripted([once, call("finish")]), None)[1] == [], "with nobody to ask the answer is no"
    asked: list[str] = []

    def first_alone(effect: Ask) -> Approved | Rejected:
        asked.append(effect.call.arguments)
        return Rejected(digest=effect.digest, reason=no) if len(asked) == 2 else Approved(digest=effect.digest)

    assert approved(Scripted([twice, call("finish")]), first_alone)[1] == ["pay 5"]
    assert len(asked) == 2


async def test_what_was_done_before_a_cancellation_is_remembered() -> None:
    cancel, desk = asyncio.Event(), Desk()

    def stop(event: Event) -> None:
        if isinstance(event, events.ToolsReturned):
            cancel.set()

    batch = calls(("look", {"what": "a"}), ("fail", {"how": "x"}))
    run_ = run(desk.workflow, "Go.", backend=Scripted([batch]), cancel=cancel, on_event=heard_by(stop))
    halted = (await run_).failure()
    assert halted.halt == Cancelled(turns=1, completed=("look",))
    texts = [m.text for m in halted.state.history if isinstance(m, Tool)]
    assert texts == ["a is 7", "[NotRun] fail: the run was cancelled before it was started"]


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
    assert any("[InDoubt] stubborn was begun" in m.text for m in halted.state.history if isinstance(m, Tool))


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
    assert texts == ["look", "look", "[NotRun] finish: the run was cancelled before it was started"]
    assert log == ["look", "look"]


def test_a_run_whose_last_call_succeeded_is_finished_cancelled_or_not() -> None:
    result, _ = stopping("finish")
    assert result.unwrap().value == "finish"
