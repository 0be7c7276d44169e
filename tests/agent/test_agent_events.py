"""The events of an agent: every start has its end, in an order that a user interface can rely on."""

import asyncio
import re
from collections.abc import Callable
from contextlib import aclosing

import msgspec
import pytest
from msgspec.structs import replace

from forge import Context, Limits, tool
from forge.agent import Agent
from forge.agent.events import (
    AgentEvent,
    ApprovalEndEvent,
    ApprovalStartEvent,
    CompactionEvent,
    DeltaEvent,
    ErrorEvent,
    MessageEvent,
    ModelCallEndEvent,
    ModelCallStartEvent,
    RemarkEvent,
    SteeredEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolProgressEvent,
    ToolResultEvent,
    TurnCompleteEvent,
    TurnStartEvent,
)
from forge.errors import WatcherError
from forge.interpreters.scripted import Line, Scripted, call, calls
from stages.effect import Approved, Ask, Budget, Fault, Rejected
from stages.halt import BudgetSpent, Cancelled
from stages.state import Completed
from stages.wire.deltas import Delta, Ended

LOOK = call("look", what="a")

LETTERS: dict[type[AgentEvent], str] = {
    TurnStartEvent: "S",
    ModelCallStartEvent: "(",
    DeltaEvent: "",
    ModelCallEndEvent: ")",
    ThinkingEvent: "T",
    RemarkEvent: "R",
    ToolCallEvent: "c",
    ApprovalStartEvent: "a",
    ApprovalEndEvent: "A",
    ToolProgressEvent: "p",
    ToolResultEvent: "r",
    SteeredEvent: "U",
    MessageEvent: "M",
    ErrorEvent: "E",
    TurnCompleteEvent: ".",
}
ORDER = re.compile(r"(S[acAprnU]*(\(\)T?R?[acAprn]*U*n*)*A?r*[ME]?\.)+")
"""Thinking before calls, calls before results, results before the message, and the turn complete last."""


def spelled(events: list[AgentEvent]) -> str:
    return "".join(LETTERS.get(type(event), "n") for event in events)


def assert_contract(events: list[AgentEvent]) -> None:
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert all(event.run and event.time > 0 for event in events)
    assert [event.turn for event in events] == sorted(event.turn for event in events)
    assert ORDER.fullmatch(spelled(events)), spelled(events)
    asking, waiting, asked = 0, set[str](), set[str]()
    for event in events:
        match event:
            case ModelCallStartEvent():
                asking += 1
            case ModelCallEndEvent():
                asking -= 1
            case ToolCallEvent(call_id=call_id):
                assert call_id not in waiting
                waiting.add(call_id)
            case ToolProgressEvent(call_id=call_id):
                assert call_id in waiting
            case ToolResultEvent(call_id=call_id):
                waiting.remove(call_id)
            case ApprovalStartEvent(call_id=call_id):
                assert call_id in waiting - asked
                asked.add(call_id)
            case ApprovalEndEvent(call_id=call_id):
                asked.remove(call_id)
            case TurnCompleteEvent():
                assert (asking, waiting, asked) == (0, set(), set())
            case _:
                pass
        assert asking in (0, 1)
        assert msgspec.json.decode(msgspec.json.encode(event), type=AgentEvent) == event


@tool(effect="read", repeatable=True)
def look(what: str) -> str:
    """Look something up."""
    return f"{what} is 7"


@tool
def work():  # type: ignore[no-untyped-def]  # noqa: ANN201 - as users write it
    """Work."""
    yield "half"
    yield "done"


@tool
def fail() -> None:
    """Fail."""
    raise RuntimeError("broken")


@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def agent(*script: Line, **options: object) -> Agent:
    return Agent("told", backend=Scripted(script), tools=[look, work, fail, pay], **options)  # type: ignore[arg-type]


def events_of(working: Agent, *messages: str, **watching: object) -> list[AgentEvent]:
    events: list[AgentEvent] = []
    for message in messages or ("Go.",):
        working.process_sync(message, on_event=events.append, **watching)  # type: ignore[arg-type]
    return events


def answering(*answers: Callable[[Ask], Approved | Rejected]) -> Callable[[Ask], object]:
    left = iter(answers)

    async def ask(question: Ask) -> Approved | Rejected:
        return next(left)(question)

    return ask


def yes(question: Ask) -> Approved:
    return Approved(digest=question.digest)


def edited(arguments: str) -> Callable[[Ask], Approved]:
    return lambda question: Approved(digest=question.digest, edited=arguments)


def no(question: Ask) -> Rejected:
    return Rejected(digest=question.digest, reason="too much")


def test_thinking_then_calls_then_results_then_the_message_then_the_turn_is_complete() -> None:
    thought = replace(LOOK, reasoning="Where is it?", text="Let me see.")
    events = events_of(agent(thought, "<think>So.</think>It is 7."))
    assert spelled(events) == "S()TRcr()TM."
    told = [event for event in events if not isinstance(event, DeltaEvent)]
    assert [event.text for event in told if isinstance(event, ThinkingEvent)] == ["Where is it?", "So."]
    assert [event.text for event in told if isinstance(event, RemarkEvent)] == ["Let me see."]
    assert [event.text for event in told if isinstance(event, MessageEvent)] == ["It is 7."]
    assert "".join(e.delta.text for e in events if isinstance(e, DeltaEvent) and hasattr(e.delta, "text"))
    assert_contract(events)


PAY = call("pay", amount=7)
DONE = call("task_completion", result="Done.")


@pytest.mark.parametrize(
    ("script", "spelling", "watching"),
    [
        (["Hi."], "S()M.", {}),
        ([DONE], "S()crM.", {}),
        ([call("ask_question", question="Which?", suggestions=["a"])], "S()crM.", {}),
        ([call("work"), DONE], "S()cppr()crM.", {}),
        ([calls(("look", {"what": "a"}), ("look", {"what": "b"})), DONE], "S()ccrr()crM.", {}),
        ([call("nothing"), DONE], "S()n()crM.", {}),
        ([call("fail"), DONE], "S()cr()crM.", {}),
        ([PAY, DONE], "S()caAr()crM.", {"ask": answering(yes)}),
        ([PAY, DONE], "S()caAr()crM.", {"ask": answering(no)}),
        ([PAY, DONE], "S()caAr()crM.", {"ask": answering(edited('{"amount": 5}'))}),
        ([PAY, DONE], "S()caAaAr()crM.", {"ask": answering(edited('{"amount": "x"}'), yes)}),
        ([PAY], "S()caArE.", {}),
        ([calls(("look", {"what": "a"}), ("pay", {"amount": 7}))], "S()crcaArE.", {}),
        ([Fault(kind="status", status=500, detail="down")], "S()E.", {}),
    ],
)
def test_what_is_told_of_each_kind_of_turn(script: list[Line], spelling: str, watching: dict[str, object]) -> None:
    events = events_of(agent(*script), **watching)
    assert spelled(events) == spelling
    assert_contract(events)


def test_a_turn_that_halts_says_why() -> None:
    *_, error, last = events_of(agent(LOOK, limits=Limits(max_iterations=1)))
    assert isinstance(error, ErrorEvent)
    assert "budget of calls" in error.text
    assert isinstance(last, TurnCompleteEvent)
    assert isinstance(last.halt, BudgetSpent)


def test_a_compaction_and_a_summary_are_told_too() -> None:
    why = "because the answer may be there " * 8
    looks = [call("look", what=f"{number}, {why}") for number in range(8)]
    model = Scripted([*looks, DONE], context_tokens=1024 + 1400)  # its summary is a call, so it cannot be used
    working = Agent("told", backend=model, tools=[look], context=Context(summarize=True))
    events: list[AgentEvent] = []
    working.process_sync("Go.", on_event=events.append)
    assert any(isinstance(event, ModelCallStartEvent) and event.purpose == "summary" for event in events)
    assert any(isinstance(event, CompactionEvent) for event in events)
    assert_contract(events)


def test_numbers_go_on_from_message_to_message_and_runs_differ() -> None:
    events = events_of(agent("One.", "Two."), "1", "2")
    assert_contract(events)
    assert len({event.run for event in events}) == 2
    assert [e.message for e in events if isinstance(e, TurnStartEvent)] == ["1", "2"]


def test_what_the_user_says_meanwhile_is_told_where_the_model_reads_it() -> None:
    working = agent(LOOK, "7 EUR.", "You are welcome.")
    events: list[AgentEvent] = []
    words = iter(["In euros.", "Thanks."])

    def on_event(event: AgentEvent) -> None:
        events.append(event)
        if isinstance(event, ToolCallEvent | MessageEvent) and (said := next(words, None)):
            working.steer(said)

    working.process_sync("Go.", on_event=on_event)
    assert spelled(events) == "S()crU()M.S()M."
    assert [e.message for e in events if isinstance(e, TurnStartEvent)] == ["Go.", "Thanks."]
    assert_contract(events)


def test_a_cancelled_turn_is_complete() -> None:
    @tool(effect="write")
    async def wait() -> None:
        """Wait for ever."""
        await asyncio.Event().wait()

    working = Agent("told", backend=Scripted([call("wait")]), tools=[wait])
    events: list[AgentEvent] = []

    def on_event(event: AgentEvent) -> None:
        events.append(event)
        if isinstance(event, ToolCallEvent):
            asyncio.get_running_loop().call_soon(working.cancel)

    working.process_sync("Go.", on_event=on_event)
    assert spelled(events) == "S()crE."
    (result,) = (event for event in events if isinstance(event, ToolResultEvent))
    assert result.status == "in_doubt"
    assert isinstance(events[-1], TurnCompleteEvent)
    assert isinstance(events[-1].halt, Cancelled)
    assert_contract(events)


def test_a_turn_that_raises_is_complete_too() -> None:
    def on_chunk(delta: Delta) -> None:
        if isinstance(delta, Ended):
            raise ConnectionError("the screen is gone")

    working, events = agent(LOOK), list[AgentEvent]()
    with pytest.raises(WatcherError):
        working.process_sync("Go.", on_event=events.append, on_chunk=on_chunk)
    assert spelled(events) == "S()E."
    assert isinstance(events[-1], TurnCompleteEvent)
    assert (events[-1].outcome, events[-1].halt) == (None, None)
    assert_contract(events)


def test_a_resumed_turn_begins_and_ends_as_well() -> None:
    working, events = (
        agent(LOOK, "Seven.", limits=Limits(max_iterations=1), context=Context(iteration_warning=0)),
        list[AgentEvent](),
    )
    working.process_sync("Go.")
    asyncio.run(working.resume(budget=Budget(calls=1), on_event=events.append))
    assert spelled(events) == "S()M."
    assert_contract(events)


def test_a_callback_that_fails_changes_nothing() -> None:
    def on_event(event: AgentEvent) -> None:
        raise ValueError(type(event).__name__)

    working = agent(LOOK, DONE)
    assert working.process_sync("Go.", on_event=on_event).unwrap().value == "Done."


async def streamed(working: Agent) -> list[AgentEvent]:
    return [event async for event in working.stream("Go.")]


def test_the_stream_gives_what_the_callback_is_told() -> None:
    script: list[Line] = ["Hm. ", replace(LOOK, text="Let me see."), call("work"), DONE]
    told = events_of(agent(*script, on_text="nudge"))
    events = asyncio.run(streamed(agent(*script, on_text="nudge")))
    bare = [[replace(event, run="", time=0.0) for event in some] for some in (told, events)]
    assert bare[0] == bare[1]
    assert isinstance(events[-1], TurnCompleteEvent)
    assert events[-1].outcome == Completed(tool="task_completion", value=msgspec.Raw(b'"Done."'))


def test_leaving_the_stream_cancels_the_work_and_the_conversation_goes_on() -> None:
    working = agent(LOOK, "Seven.")

    async def left() -> None:
        async with aclosing(working.stream("Go.")) as events:
            async for event in events:
                if isinstance(event, ToolCallEvent):
                    break
        assert len(asyncio.all_tasks()) == 1, "the work goes on behind the reader's back"
        assert (await working.process("And?")).unwrap().value == "Seven."

    asyncio.run(left())


def test_the_agent_waits_for_a_slow_reader() -> None:
    model = Scripted([LOOK] * 1000)
    working = Agent("told", backend=model, tools=[look], limits=Limits(max_iterations=1000, max_repeats=None))

    async def slow() -> int:
        async with aclosing(working.stream("Go.")) as events:
            await anext(events)
            for _ in range(5_000):
                await asyncio.sleep(0)
            return len(model.requests)

    assert asyncio.run(slow()) < 300
