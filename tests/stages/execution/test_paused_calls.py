"""Calls with a question to the user: which is next, and what the run goes on with."""

from msgspec import Raw

from stages.effect import Budget, CallResult, Failed, InDoubt, NeedsInput, NotRun, Paused, Said, Succeeded, Unresolved
from stages.execution import answered, paused_call, with_exchange, without_lost_pauses, without_pause
from stages.message import Assistant, ToolCall, User
from stages.state import Batch, Done, Executed, Ledger, State

ONE = Paused(call_id="1", asks=NeedsInput(question="Which?"), saved="{}")
TWO = Paused(call_id="2", asks=NeedsInput(question="When?"), saved="{}")
CALLS = tuple(ToolCall(id=i, name=f"expert{i}", arguments="{}") for i in "12")
BATCH = Batch(said=Assistant(calls=CALLS), results=(ONE, TWO))


def done(batch: Batch) -> State:
    ledger = Ledger(budget=Budget(calls=1), retries=2, turn=3)
    return State(history=(User(text="Go."),), ledger=ledger, phase=Done(outcome=ONE.asks, batch=batch))


def test_an_answered_call_goes_first_then_the_first_that_asks() -> None:
    assert paused_call(Batch()) is None
    assert paused_call(BATCH) == ONE
    state = answered(done(Batch(said=BATCH.said, results=(TWO, ONE))), "soon", Budget())
    assert state is not None
    assert isinstance(state.phase, Executed)
    first = paused_call(state.phase.batch)
    assert first is not None
    assert (first.call_id, first.answer) == ("2", "soon")
    assert without_pause(state.phase.batch, first).results == (ONE,)


def test_an_answer_has_a_budget_of_its_own_and_keeps_what_was_done() -> None:
    state = answered(done(BATCH), "A-17", Budget(calls=9))
    assert state is not None
    assert state.history == (User(text="Go."),)
    assert (state.ledger.budget, state.ledger.retries, state.ledger.turn) == (Budget(calls=9), 0, 3)


def test_a_run_that_ended_otherwise_has_no_answer() -> None:
    assert answered(State(history=()), "A-17", Budget()) is None
    assert answered(State(history=(), phase=Done(outcome=Said(text="Hi."))), "A-17", Budget()) is None


def test_a_call_whose_tool_is_gone_is_given_up() -> None:
    batch = without_lost_pauses(BATCH, {"expert2"})
    first, second = batch.results
    assert isinstance(first, NotRun)
    assert "Which?" in first.reason
    assert second == TWO
    assert without_lost_pauses(BATCH, {"expert1", "expert2"}) is BATCH


def test_a_result_is_after_the_question_and_its_answer() -> None:
    paused = Paused(call_id="1", asks=NeedsInput(question="Which?"), answer="A-17")
    results: tuple[CallResult, ...] = (
        Succeeded(call_id="1", text="paid", value=Raw(b'"paid"')),
        Unresolved(call_id="1", message="not there"),
        Failed(call_id="1", error="ValueError", message="broken"),
    )
    for result in results:
        told = with_exchange(result, paused)
        text = told.text if isinstance(told, Succeeded) else getattr(told, "message", "")
        assert text.startswith("[The user was asked: Which? The answer: A-17]\n")
    assert with_exchange(InDoubt(call_id="1", reason="crashed"), paused) == InDoubt(call_id="1", reason="crashed")
    value = getattr(with_exchange(results[0], paused), "value", b"")
    assert bytes(value) == b'"paid"', "the value is the tool's own"
