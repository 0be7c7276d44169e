"""A session's ledger is what its history says: recounted, it is that of the run that made the history."""

from collections.abc import Callable
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from returns.result import Success

from forge import Calls, Context, Limits, Workflow, run_sync, tool
from forge.errors import ToolFailed, ToolResolutionError
from forge.interpreters.scripted import Scripted, call
from stages.compaction import NoCompact
from stages.effect import Reply, Request
from stages.guards import guards_of
from stages.message import Assistant, History, Kind, Tool, ToolCall, User
from stages.objection import Custom, Guard, Objection, Stop
from stages.order import Change, Each, Use
from stages.recounting import recount
from stages.rules import legal_tools, pending
from stages.schema.canonical_json import canonical
from stages.state import Attempt, Done, Ledger, Ready, State
from stages.wire.sampling import Sampling
from stages.wire.server.request import ServerRequest
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES, ServerWire
from stages.wire.wires import ANTHROPIC, OPENAI, Wire
from tests.property.responses_client import body_of


@tool(effect="read")
def look(at: int) -> str:
    """Look at a place."""
    return f"place {at // 2}"


@tool(repeatable=True)
def wait() -> str:
    """Wait."""
    return "waited"


@tool(prerequisites=["look"])
def note(text: str) -> str:
    """Note something."""
    if text == "a":
        raise ToolResolutionError("there is no page a")
    if text == "b":
        raise ToolFailed("the pen is empty.")
    if text == "c":
        raise ValueError("c is no text")
    return text


@tool
def send(text: str) -> str:
    """Send it."""
    return text


NUMBERS = count()


@tool
def order(text: str) -> str:
    """Order it."""
    return f"order {next(NUMBERS)} of {text}"


PLACES, TEXTS = st.integers(0, 3), st.sampled_from("abcd")
CALLS = st.one_of(
    st.builds(lambda at: call("look", at=at), PLACES),
    st.just(call("wait")),
    st.builds(lambda text: call("note", text=text), TEXTS),
    st.builds(lambda text: call("send", text=text), TEXTS),
    st.builds(lambda text: call("order", text=text), st.sampled_from("ad")),
    st.just(call("fly")),
    st.just(call("look", at="the door")),
)
REPLIES = st.one_of(
    CALLS,
    st.lists(CALLS, min_size=2, max_size=3).map(lambda several: Reply(calls=sum((r.calls for r in several), ()))),
    st.sampled_from(["Hm.", ""]),
)
ORDERS = st.sampled_from(
    [
        (),
        (Use(tool="look", at_most=2),),
        (Use(tool="order", at_least=2),),
        (Use(tool="look", at_least=2, distinct=True),),
        (Use(tool="note", each_of=Each(tool="look", argument="text", member="at")),),
        (Use(tool="note", at_least=1),),
        (Use(tool="look", again_after=("note", Change(tool="send", match_arg="text"))),),
        (Use(tool="look", again_after=("order",), counts_if=lambda result: result != "place 0"),),
        (Use(tool="note", counts_if=lambda result: result == "d"),),
    ]
)


def not_d(_: State, calls: tuple[ToolCall, ...]) -> list[Objection]:
    """A guard of one's own: its words have no mark of forge's."""
    return [Objection(call=one, wrong=Custom(text="Not d.")) for one in calls if '"d"' in one.arguments]


@st.composite
def runs(draw: st.DrawFn, *guards: Guard) -> tuple[Workflow[Any], State]:
    """A workflow, and where a run of it came with some model."""
    workflow: Workflow[Any] = Workflow(
        "any",
        tools=[look, wait, note, order, send],
        terminal_tool="send",
        required_steps=draw(st.sampled_from(["look", ("wait", "note"), ()])),
        order=draw(ORDERS),
        limits=Limits(
            max_repeats=draw(st.sampled_from([None, 1, 2])),
            max_tool_calls=draw(st.sampled_from([None, 3, 12])),
            max_iterations=12,
            max_tool_errors=9,
            max_retries_per_step=9,
        ),
        calls=Calls(
            batch=draw(st.sampled_from(["all", "first", "independent"])),
            on_violation=draw(st.sampled_from(["block_all", "block_call"])),
        ),
        context=Context(compactor=NoCompact()),
        on_text=draw(st.sampled_from(["nudge", "accept"])),
        guards=guards,
    )
    replies = draw(st.lists(REPLIES, min_size=1, max_size=12))
    result = run_sync(workflow, "Go.", backend=Scripted([*replies, *["Hm."] * 12]))
    end = result.unwrap() if isinstance(result, Success) else result.failure()
    return workflow, end.state


def ran(ledger: Ledger, history: History) -> list[Attempt]:
    """The attempts whose calls ran: those that were refused are hidden from a client."""
    refused = {m.call_id for m in history if isinstance(m, Tool) and m.kind is not Kind.TOOL_RESULT}
    calls = (call for m in history if isinstance(m, Assistant) for call in m.calls if call.id in refused)
    hidden = [(call.name, call.arguments) for call in calls]
    return [a for a in ledger.attempts if a.answer or (a.name, a.arguments) not in hidden]


@given(st.one_of(runs(), runs(not_d)))
def test_recounted_from_its_history_a_run_has_the_ledger_that_it_has(made: tuple[Workflow[Any], State]) -> None:
    workflow, state = made
    ledger, again = state.ledger, recount(workflow.rules, state.history, budget=workflow.budget)
    assert again.successes == ledger.successes
    assert ran(again, state.history) == ran(ledger, state.history)
    assert (again.seen, again.progress) == (ledger.seen, ledger.progress)
    if isinstance(state.phase, Ready | Done):  # else a reply, or part of a batch, is not in the history yet
        assert (again.turn, again.budget.tool_calls) == (ledger.turn, ledger.budget.tool_calls)
    assert pending(workflow.rules, again) == pending(workflow.rules, ledger)
    assert legal_tools(workflow.rules, structs.replace(state, ledger=again)) == legal_tools(workflow.rules, state)


SAMPLING = Sampling(max_tokens=9)


def body(history: History, spoken: Wire) -> bytes:
    """A request with the history."""
    head = spoken.head("m", SAMPLING, history)
    return Request(head=head, messages=spoken.messages(history)).body


CLIENTS: dict[str, tuple[ServerWire, Callable[[History], bytes]]] = {
    "chat": (CHAT, lambda history: body(history, OPENAI)),
    "messages": (MESSAGES, lambda history: body(history, ANTHROPIC)),
    "responses": (RESPONSES, lambda history: body_of(history, SAMPLING, ())),
}


def as_sent(history: History, protocol: str) -> History:
    """The history as a server reads it that a client sent it to."""
    server, write = CLIENTS[protocol]
    request = server.decode_request(write(history))
    assert isinstance(request, ServerRequest)
    return request.history


def seen(ledger: Ledger) -> tuple[object, ...]:
    """What rules are judged by, whatever the calls' arguments look like."""
    done = [(one.name, canonical(one.arguments), one.answer) for one in ledger.successes]
    vain = [(one.name, canonical(one.arguments), one.answer) for one in ledger.attempts if one.answer]
    return done, vain, ledger.seen


@given(made=runs())
def test_a_client_that_sends_such_a_history_is_held_to_the_same(made: tuple[Workflow[Any], State]) -> None:
    """Kinds and outcomes are not sent; forge's marks in the texts stand for them."""
    workflow, state = made
    here = recount(workflow.rules, state.history, budget=workflow.budget)
    # A client is not shown what forge said to the model between two replies.
    shown = tuple(m for m in state.history if not isinstance(m, User) or m.kind is Kind.USER_INPUT)
    for protocol in CLIENTS:
        there = recount(workflow.rules, as_sent(state.history, protocol), budget=workflow.budget)
        assert seen(there) == seen(here)
        # A mark in a text gives no call back: the text may be a tool's own.
        assert (there.budget.tool_calls or 0) <= (here.budget.tool_calls or 0)
        sent = as_sent(shown, protocol)
        # A tool's error that names a withheld tool may have lost its status on the way; a mark alone unlocks nothing.
        both = State(history=sent, ledger=there), State(history=state.history, ledger=here)
        theirs, legal = ({tool.name for tool in legal_tools(workflow.rules, one)} for one in both)
        assert legal - {*workflow.rules.withheld} <= theirs <= legal


BATCHES = st.lists(CALLS, min_size=1, max_size=2).map(
    lambda replies: tuple(
        ToolCall(id=f"new{n}", name=made.name, arguments=made.arguments)
        for n, made in enumerate(one for reply in replies for one in reply.calls)
        if made.name != "fly"
    )
)


def judged(guard: Guard, state: State, batch: tuple[ToolCall, ...]) -> object:
    """Which calls the guard refuses, and for what."""
    verdict = guard(state, batch)
    return verdict if isinstance(verdict, Stop) else [(one.call, type(one.wrong)) for one in verdict]


@given(runs(), BATCHES)
def test_the_guards_refuse_the_same_calls_by_either_ledger(
    made: tuple[Workflow[Any], State], batch: tuple[ToolCall, ...]
) -> None:
    """But for mistakes in a row, which a client's history does not show: here there were none."""
    workflow, state = made
    here = state.note(premature=0, prerequisite_violations=0)
    again = recount(workflow.rules, state.history, budget=workflow.budget)
    for guard in guards_of(workflow.rules):
        assert judged(guard, here, batch) == judged(guard, here.note(**structs.asdict(again)), batch)
