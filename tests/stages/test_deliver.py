"""Deliver: each outcome goes where it belongs, and is paid for; what belongs nowhere is refused."""

import pytest
from msgspec.structs import replace

from stages.deliver import deliver, interrupt, reopened
from stages.effect import (
    Ask,
    Budget,
    Effect,
    Execute,
    Fault,
    Outcome,
    Price,
    Replied,
    Reply,
    Request,
    Results,
    Send,
    Succeeded,
    Undelivered,
    Usage,
)
from stages.execution import call_digest
from stages.message import Assistant, Tool, ToolCall
from stages.state import Awaiting, Batch, Executed, Ready, State

CALL = ToolCall(id="call_1", name="write", arguments='{"text":"t"}')
DIGEST = call_digest(CALL)
SEND, EXECUTE, ASK = Send(request=Request(), turn=1), Execute(calls=(CALL,)), Ask(call=CALL, digest=DIGEST)
FINE = Results(results=(Succeeded(call_id="call_1", text="done"),), seconds=2.0)
SLOW = Fault(kind="timeout", detail="no first byte")


def awaiting(effect: Effect, **ledger: object) -> State:
    batch = Batch() if isinstance(effect, Send) else Batch(said=Assistant(calls=(CALL,)))
    return State(history=(), phase=Awaiting(effect=effect, batch=batch)).note(**ledger)


def delivered(effect: Effect, outcome: Outcome, **ledger: object) -> State:
    return deliver(awaiting(effect, **ledger), outcome).unwrap()


def test_a_reply_costs_what_the_server_counted_and_the_time_that_it_took() -> None:
    usage = Usage(prompt=600, completion=100)
    budget = Budget(tokens=1_000, seconds=10.0, cost=1.0, price=Price(prompt=1_000.0))
    ledger = delivered(SEND, Replied(reply=Reply(usage=usage), seconds=4.0), budget=budget).ledger
    assert (ledger.budget.tokens, ledger.budget.seconds, ledger.tokens_used) == (300, 6.0, 700)
    assert [ledger.budget.cost, ledger.cost] == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize("usage", [None, Usage(prompt=-5, completion=-5, cached=-5), Usage(prompt=10**9)])
def test_a_budget_never_grows_nor_falls_below_nothing(usage: Usage | None) -> None:
    ledger = delivered(
        SEND, Replied(reply=Reply(usage=usage), seconds=99.0), budget=Budget(tokens=50, seconds=1.0)
    ).ledger
    assert ledger.budget.seconds == 0.0
    assert ledger.budget.tokens is not None
    assert 0 <= ledger.budget.tokens <= 50
    assert ledger.tokens_used >= 0


@pytest.mark.parametrize("usage", [None, Usage(prompt=0, completion=0)])
def test_tokens_that_a_server_does_not_count_are_estimated_where_a_budget_depends_on_them(usage: Usage | None) -> None:
    reply = Replied(reply=Reply(text="word " * 400, usage=usage))
    spent = delivered(SEND, reply, budget=Budget(tokens=2_000), prompt_size=4_000).ledger
    assert spent.tokens_used == pytest.approx(1_500, abs=3)
    assert spent.budget.tokens == 2_000 - spent.tokens_used
    assert delivered(SEND, reply, prompt_size=4_000).ledger.tokens_used == 0


def test_results_go_into_the_batch_and_cost_calls_and_time() -> None:
    after = delivered(EXECUTE, FINE, budget=Budget(tool_calls=3, seconds=5.0))
    assert after.phase == Executed(batch=Batch(said=Assistant(calls=(CALL,)), results=FINE.results))
    assert (after.ledger.budget.tool_calls, after.ledger.budget.seconds) == (2, 3.0)


@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        (SEND, FINE),
        (EXECUTE, Results(results=())),
        (EXECUTE, Results(results=(Succeeded(call_id="call_2", text=""),))),
        (ASK, Undelivered(fault=SLOW)),
    ],
)
def test_an_outcome_of_something_else_is_refused(effect: Effect, outcome: Outcome) -> None:
    with pytest.raises(ValueError, match=f"does not answer the {type(effect).__name__} that is awaited"):
        deliver(awaiting(effect), outcome)


def test_an_outcome_that_nobody_awaits_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is awaited in the phase Ready"):
        deliver(State(history=()), FINE)


@pytest.mark.parametrize(
    ("retriable", "begun", "status"), [(False, True, "in_doubt"), (True, True, "not_run"), (False, False, "not_run")]
)
def test_a_run_that_is_cut_short_answers_every_call(status: str, *, retriable: bool, begun: bool) -> None:
    after = interrupt(awaiting(replace(EXECUTE, retriable=retriable)), begun=begun)
    assert isinstance(after.phase, Ready)
    assert [message.status for message in after.history if isinstance(message, Tool)] == [status]
    assert bool(after.ledger.in_doubt) == (status == "in_doubt")


def test_a_request_that_was_never_answered_is_neither_paid_for_nor_counted() -> None:
    again = reopened(awaiting(SEND, turn=4, budget=Budget(calls=5), rejected=(DIGEST,)))
    assert again.phase == Ready()
    assert (again.ledger.turn, again.ledger.budget.calls, again.ledger.rejected) == (3, 6, ())
