"""The stage `compact`: when the compactor is asked, and what the ledger notes of it."""

import pytest
from msgspec.structs import replace

from stages import compact
from stages.compaction import Compacted, Compactor, ContextBudget, NoCompact, TieredCompact
from stages.halt import CannotFit
from stages.message import Assistant, History, System, Tool, ToolCall, User
from stages.state import Ready, State, SummaryOrder

BUDGET = ContextBudget(tokens=1_000)


def history(results: int, characters: int) -> History:
    said: list[Assistant | Tool] = []
    for n in range(results):
        call = ToolCall(id=f"call_{n}", name="look", arguments="{}")
        said += [
            Assistant(calls=(call,), turn=n),
            Tool(call_id=call.id, name="look", text="word " * characters, turn=n),
        ]
    return (System(text="Do the work."), User(text="Go."), *said)


SHORT, LONG = State(history=history(1, 1)), State(history=history(40, 100))


def refuse(_: History, budget: ContextBudget) -> Compacted | CannotFit:
    raise AssertionError("the compactor was asked")


def test_a_history_that_fits_is_left_alone_and_nobody_is_asked() -> None:
    after = compact(refuse, BUDGET)(SHORT).unwrap()
    assert (after.history, after.ledger.compactions) == (SHORT.history, ())
    assert after.ledger.context_tokens == BUDGET.tokens


def test_a_history_over_the_threshold_is_cut_and_the_ledger_says_how_far() -> None:
    after = compact(TieredCompact(), BUDGET)(LONG.note(turn=7)).unwrap()
    (event,) = after.ledger.compactions
    assert (event.turn, event.budget_tokens) == (7, BUDGET.tokens)
    assert (event.messages_before, event.messages_after) == (len(LONG.history), len(after.history))
    assert event.tokens_after <= BUDGET.tokens < event.tokens_before
    assert isinstance(after.phase, Ready)


def test_what_it_cuts_can_be_recalled_only_if_it_is_asked_to() -> None:
    kept = compact(TieredCompact(), replace(BUDGET, recall=True))(LONG).unwrap()
    assert {one.text for one in kept.cleared} == {"word " * 100}
    assert compact(TieredCompact(), BUDGET)(LONG).unwrap().cleared == ()


def test_a_compactor_that_changes_nothing_leaves_no_trace() -> None:
    after = compact(NoCompact(), ContextBudget(tokens=100_000, threshold=0.01))(LONG).unwrap()
    assert (after.history, after.ledger.compactions) == (LONG.history, ())


def test_while_a_summary_is_asked_for_nothing_is_cut() -> None:
    order = SummaryOrder(text="Sum up.", messages=3, shortest=1, budget=BUDGET)
    state = LONG.to(Ready(summary=order))
    assert compact(refuse, BUDGET)(state).unwrap().history == LONG.history


@pytest.mark.parametrize("compactor", [lambda history, _: history, lambda _history, _budget: None])
def test_a_compactor_that_returns_something_else_is_named_with_what_it_must_return(compactor: Compactor) -> None:
    with pytest.raises(TypeError, match=r"a compactor returned \w+; it must be Compacted"):
        compact(compactor, BUDGET)(LONG)
