"""Summaries: asked for when cutting is not enough, used when they are shorter, done without when they are not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from returns.result import Failure, Result, Success

from forge import (
    Finished,
    Halted,
    NoCompact,
    SlidingWindowCompact,
    TieredCompact,
    Workflow,
    resume,
    run,
    run_sync,
    tool,
)
from forge.connection import Connection, Setup
from forge.interpreters import interpreter
from forge.interpreters.scripted import Line, Scripted, call
from forge.testing import assert_answered, histories
from forge.workflow.turn import compiled_turn
from forge.workflow.workflow import Context
from stages import events, nudges, pipeline
from stages.compaction import Compactor, ContextBudget
from stages.compaction.history import is_protected
from stages.deliver import deliver
from stages.effect import Budget, Fault, Replied, Reply, Send, Undelivered
from stages.halt import BudgetSpent
from stages.message import Assistant, History, Kind, Message, System, Tool, ToolCall, User
from stages.rules import Limits
from stages.saved import load, save
from stages.state import Awaiting, Done, Ledger, Ready, State
from stages.view.summary import SUMMARY_PHASE, Summarize, ask_for_summary
from stages.wire.target import Mode
from tests.flows import finish
from tests.heard import heard_by
from tests.property.machine import outcomes, replies, stages_in_order

NOTE = "I looked up a to h; all of them are 7. Nothing failed. What is left is to finish."
LONG = "a rather long description of what is to be looked up " * 5


@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    return f"{what[:1]} is 7"


def workflow(compactor: Compactor | None = None, calls: int = 30, **context: object) -> Workflow:
    shown = {"summarize": True, "compact_to": 0.5, "compactor": compactor or TieredCompact(keep_recent=1)} | context
    return Workflow(
        "long",
        tools=[look, finish],
        terminal_tool="finish",
        system_prompt="Do the work.",
        limits=Limits(max_iterations=calls),
        context=Context(**shown),  # type: ignore[arg-type]  # options of a test, passed on as they are
    )


def looks(count: int) -> list[Line]:
    """Calls that take room by their arguments, which no tier cuts."""
    return [call("look", what=f"{chr(97 + n)} {LONG}") for n in range(count)]


ROOM = 1024 + 1400


def played(
    script: list[Line], flow: Workflow | None = None, **options: object
) -> tuple[Result[Finished, Halted], Scripted]:
    model = Scripted(script, context_tokens=ROOM, **options)  # type: ignore[arg-type]  # a mode, or nothing
    return run_sync(flow or workflow(), "Go.", backend=model), model


def last(body: bytes) -> str:
    text: str = msgspec.json.decode(body)["messages"][-1]["content"]
    return text


def asks(model: Scripted) -> list[int]:
    """The requests, by number, that asked for a summary."""
    return [n for n, body in enumerate(model.requests) if "[Summary] The older" in last(body)]


DUE = asks(played([*looks(20), call("finish")])[1])[0]
"""So many looks, and a summary is asked for."""


def test_a_summary_takes_the_place_of_what_it_sums_up() -> None:
    result, model = played([*looks(DUE), f"<think>Hm.</think>{NOTE}", call("finish")])
    state = result.unwrap().state
    assert asks(model) == [DUE]
    system, goal, summary, *rest = state.history
    assert (system, goal) == (System(text="Do the work."), User(text="Go."))
    assert isinstance(summary, User)
    assert summary.kind is Kind.SUMMARY
    assert summary.pinned
    assert summary.text.endswith(NOTE)
    assert [c.arguments[9] for m in rest if isinstance(m, Assistant) for c in m.calls if c.name == "look"] == [
        chr(97 + DUE - 2),
        chr(97 + DUE - 1),
    ]
    (cut,) = state.ledger.compactions
    assert cut.phase == SUMMARY_PHASE
    assert cut.tokens_after < cut.tokens_before
    assert state.ledger.budget.calls == 30 - len(model.requests), "a summary is paid for like any call"


def test_it_is_asked_for_in_the_words_that_the_server_knows_already() -> None:
    """Its cache of the prompt serves again: the request is the last one and what came since."""
    _, model = played([*looks(DUE), NOTE, call("finish")])
    asked, before = (msgspec.json.decode(model.requests[n])["messages"] for n in (DUE, DUE - 1))
    assert asked[: len(before)] == before
    assert [m["role"] for m in asked[len(before) :]] == ["assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("mode", "fields", "answer"),
    [
        ("native", {"messages", "tools"}, NOTE),
        ("prompted", {"messages"}, NOTE),
        (
            "constrained",
            {"messages", "response_format"},
            msgspec.json.encode({"done_and_found": NOTE, "did_not_work": "", "still_open": " "}).decode(),
        ),
    ],
)
def test_it_is_asked_for_in_each_mode(mode: Mode, fields: set[str], answer: str) -> None:
    """Where calls are what a constraint allows, a summary is what it allows then."""
    _, model = played([*looks(3 * DUE), call("finish")], mode=mode)
    due = asks(model)[0]
    result, model = played([*looks(due), answer, call("finish")], mode=mode)
    asked = msgspec.json.decode(model.requests[due])
    assert asked.keys() & {"messages", "tools", "response_format"} == fields
    if "response_format" in asked:
        assert asked["response_format"]["json_schema"]["schema"]["required"] == [
            "done_and_found",
            "did_not_work",
            "still_open",
        ]
    (summary,) = [m for m in result.unwrap().state.history if isinstance(m, User) and m.kind is Kind.SUMMARY]
    assert summary.text.endswith(NOTE)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "it is empty, or almost"),
        ("<think>I should sum up what was done so far, in a few words.</think>", "it is empty, or almost"),
        (call("look", what="z"), "the model called a tool instead"),
        ('{"tool": "look", "args": {"what": "z"}}', "the model called a tool instead"),
        ('<tool_call>{"name": "look", "argu', "the model called a tool instead"),
        (nudges.summarize(300), "it repeats what it was asked"),
        (f"{NOTE} {nudges.summarize(300)[105:260]}", "it repeats what it was asked"),
        (Reply(text=NOTE, finish="length"), "it was cut off by the length limit of a reply"),
        ("So much was done. " * 500, "it is no shorter than what it would replace"),
        (Fault(kind="timeout", detail="too slow"), "it did not come: too slow"),
    ],
)
def test_a_reply_that_is_no_use_is_done_without(answer: Line, problem: str) -> None:
    heard: list[events.Event] = []
    model = Scripted([*looks(DUE), answer, *looks(1), call("finish")], context_tokens=ROOM)
    state = run_sync(workflow(), "Go.", backend=model, on_event=heard_by(heard.append)).unwrap().state
    assert [e.problem for e in heard if isinstance(e, events.SummaryFailed)] == [problem]
    assert not any(isinstance(m, User) and m.text.startswith("[Summary") for m in state.history)
    assert all(last(body) != "[Summary] " for body in model.requests[DUE + 1 :])
    assert state.ledger.compactions, "the deterministic tiers did what they could"
    assert state.ledger.tool_errors == state.ledger.retries == 0, "no mistake of the run's own"


def test_after_two_that_were_no_use_none_is_asked_for_any_more() -> None:
    result, model = played([*(call("look", what=f"{n} {LONG}") for n in range(29)), call("finish")])
    assert len(asks(model)) == 2
    assert result.unwrap().state.ledger.summary_failures == ("the model called a tool instead",) * 2


class Noting:
    """A model that looks things up, and writes a numbered note whenever it is asked for a summary."""

    def __init__(self, looks: int) -> None:
        self.looks, self.notes, self.requests = looks, 0, list[bytes]()

    async def __call__(self, effect: Send) -> Replied:
        self.requests.append(effect.request.body)
        if "[Summary] The older" in last(effect.request.body):
            self.notes += 1
            return Replied(reply=Reply(text=f"Note {self.notes}. {NOTE}"))
        self.looks -= 1
        return Replied(reply=call("look", what=f"{self.looks} {LONG}") if self.looks else call("finish"))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        yield Connection(Setup(model="m", context_tokens=ROOM), self)


def test_a_summary_is_itself_summed_up_later() -> None:
    model = Noting(looks=25)
    state = run_sync(workflow(calls=40), "Go.", backend=model).unwrap().state
    assert model.notes >= 3
    (summary,) = [m for m in state.history if isinstance(m, User) and m.kind is Kind.SUMMARY]
    assert f"Note {model.notes}." in summary.text
    asked = [body for body in model.requests if "[Summary] The older" in last(body)]
    assert f"Note {model.notes - 1}." in asked[-1].decode(), "the one before is there to be taken in"
    assert state.ledger.turn == len(model.requests) == 25 + model.notes


def test_a_window_that_slides_asks_before_it_drops() -> None:
    script: list[Line] = [*looks(DUE), NOTE, call("finish")]
    result, model = played(script, workflow(SlidingWindowCompact(keep_recent=1)))
    assert asks(model) == [DUE]
    assert isinstance(result, Success)


def test_what_cutting_can_do_needs_no_summary() -> None:
    @tool(effect="read", name="look")
    def long(what: str) -> str:
        """Look something up."""
        return what + " long" * 150

    flow = Workflow(
        "w",
        tools=[long, finish],
        terminal_tool="finish",
        context=Context(summarize=True, compact_to=0.5),
        limits=Limits(max_iterations=30),
    )
    model = Scripted([*(call("look", what=c) for c in "abcdefghijklmnop"), call("finish")], context_tokens=1024 + 2800)
    result = run_sync(flow, "Go.", backend=model)
    assert result.unwrap().state.ledger.compactions
    assert not asks(model)


def test_the_last_model_call_is_not_spent_on_a_summary() -> None:
    result, model = played(looks(DUE + 1), workflow(calls=DUE + 1))
    assert isinstance(result, Failure)
    assert isinstance(result.failure().halt, BudgetSpent)
    assert not asks(model)


def test_what_is_summed_up_can_be_recalled() -> None:
    script: list[Line] = [*looks(DUE)]
    flow = workflow(recall=True)
    _, model = played([*looks(20), call("finish")], flow)
    due = asks(model)[0]
    script = [*looks(due), NOTE, call("recall", call_id="call_000000001"), call("finish")]
    result, model = played(script, flow)
    assert "call_000000001 (look)" in msgspec.json.decode(model.requests[-1])["messages"][2]["content"]
    assert last(model.requests[-1]) == "a is 7"
    assert isinstance(result, Success)


async def stopped_at_summary(flow: Workflow) -> State:
    """The state of a run whose process ended while the model wrote the summary."""
    model = Scripted(looks(DUE), context_tokens=ROOM)
    async with model.connect() as connection:
        turn = compiled_turn(flow.compiled, connection.setup)
    state = flow.start("Go.")
    perform = interpreter(model, flow.execute)
    while True:
        state = turn(state).unwrap()
        if isinstance(state.phase, Awaiting):
            if state.phase.summary:
                return load(save(state))
            state = deliver(state, await perform(state.phase.effect)).unwrap()


def test_a_run_that_ended_while_the_summary_was_written_goes_on_with_it() -> None:
    async def go() -> tuple[State, State]:
        state = await stopped_at_summary(workflow())
        model = Scripted([NOTE, call("finish")], context_tokens=ROOM)
        resumed = (await resume(workflow(), state, backend=model)).unwrap().state
        model.assert_complete()
        whole = Scripted([*looks(DUE), NOTE, call("finish")], context_tokens=ROOM)
        return resumed, (await run(workflow(), "Go.", backend=whole)).unwrap().state

    resumed, whole = asyncio.run(go())
    assert resumed.history == whole.history
    assert resumed.ledger == whole.ledger


def test_cancelled_while_the_summary_is_written() -> None:
    async def go() -> Result[Finished, Halted]:
        cancel = asyncio.Event()

        def watch(event: events.Event) -> None:
            if isinstance(event, events.SummaryAsked):
                cancel.set()

        model = Scripted([*looks(DUE), NOTE], context_tokens=ROOM)
        return await run(workflow(), "Go.", backend=model, on_event=heard_by(watch), cancel=cancel)

    state = asyncio.run(go()).failure().state
    assert isinstance(state.phase, Ready)
    assert_answered(state.history)
    model = Scripted([call("finish")], context_tokens=ROOM)
    assert isinstance(asyncio.run(resume(workflow(), state, backend=model)), Success)


def test_warnings_are_for_turns_only() -> None:
    flow = workflow(iteration_warning=30)
    _, model = played([*looks(20), call("finish")], flow)
    assert asks(model), "the request for a summary is the last message, with no warning after it"


GOALS: History = (System(text="s"), User(text="A"))


def exchange(n: int, turn: int) -> History:
    made = ToolCall(id=f"call_{n}", name="look", arguments='{"what":"' + "x" * 300 + '"}')
    return (Assistant(calls=(made,), turn=turn), Tool(call_id=made.id, name="look", text="7", turn=turn))


BUDGET = ContextBudget(tokens=8000, threshold=0.02, low=0.01)
TURN = pipeline(ask_for_summary(Summarize(keep_recent=1, smallest=0.005), NoCompact(), BUDGET), *stages_in_order())


def asked(history: History) -> State | None:
    """The state that waits for a summary of the history, None where none is asked for."""
    turn = max((m.turn for m in history if not isinstance(m, System)), default=0)
    moved = TURN(State(history=history, ledger=Ledger(turn=turn)))
    state = moved.unwrap() if isinstance(moved, Success) else None
    return state if state and isinstance(state.phase, Awaiting) and state.phase.summary else None


def test_what_the_user_asked_and_what_is_pinned_stays_and_nothing_is_told_before_it_was_asked_for() -> None:
    pinned = tuple(replace(m, pinned=True) for m in exchange(3, 3) if not isinstance(m, System))
    second: History = (User(text="B", turn=3),)
    recent = exchange(9, 9)
    history = (*GOALS, *exchange(1, 1), *exchange(2, 2), *pinned, *second, *exchange(4, 4), *exchange(5, 5), *recent)
    state = asked(history)
    assert state is not None
    after = deliver(state, Replied(reply=Reply(text=NOTE))).unwrap().history
    assert after[: len(GOALS)] == GOALS
    assert after[2:5] == (*pinned, *second)
    assert isinstance(after[5], User)
    assert after[5].kind is Kind.SUMMARY
    assert after[6:] == recent


def kept(message: Message) -> bool:
    """What must stay, whatever comes: of the protected messages all but summaries, which the next one takes in."""
    return is_protected(message) and not (isinstance(message, User) and message.kind is Kind.SUMMARY)


@given(history=histories(), reply=replies | st.builds(Reply, text=st.just(NOTE)), undelivered=st.booleans())
def test_whatever_the_model_answers_nothing_is_lost_that_must_stay(
    history: History, reply: Reply, undelivered: bool
) -> None:
    state = asked(history)
    assume(state is not None)
    assert state is not None
    fault = Undelivered(fault=Fault(kind="timeout", detail="slow"))
    after = deliver(state, fault if undelivered else Replied(reply=reply)).unwrap()
    assert isinstance(after.phase, Ready)
    assert_answered(after.history)
    assert list(filter(kept, after.history)) == list(filter(kept, history))
    assert BUDGET.count(after.history) <= BUDGET.count(history)
    recent = [m for m in history if not isinstance(m, System) and m.turn == state.ledger.turn - 1]
    assert [m for m in after.history if m in recent] == recent
    moved = TURN(after)
    if isinstance(moved, Success) and isinstance(moved.unwrap().phase, Awaiting):
        phase = moved.unwrap().phase
        assert isinstance(phase, Awaiting)
        assert phase.summary is None, "never asked for twice in the same turn"


@given(history=histories(), data=st.data())
def test_a_run_that_sums_up_terminates_too(history: History, data: st.DataObject) -> None:
    state = State(history=history, ledger=Ledger(budget=Budget(calls=6)))
    for _ in range(200):
        moved = TURN(state)
        if isinstance(moved, Failure) or isinstance(moved.unwrap().phase, Done):
            return
        state = moved.unwrap()
        assert_answered(state.history)
        if isinstance(state.phase, Awaiting):
            state = deliver(state, data.draw(outcomes(state.phase))).unwrap()
    pytest.fail("the run did not end")
