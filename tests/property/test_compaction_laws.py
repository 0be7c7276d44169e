"""The laws of D18, for every compactor that forge ships."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stages.compaction import (
    Compacted,
    Compactor,
    ContextBudget,
    NoCompact,
    SlidingWindowCompact,
    TieredCompact,
    estimate,
)
from stages.halt import CannotFit
from stages.message import Assistant, History, Kind, System, Tool, User
from tests.property.strategies import histories

COMPACTORS: list[Compactor] = [
    NoCompact(),
    SlidingWindowCompact(keep_recent=2),
    SlidingWindowCompact(keep_recent=0),
    TieredCompact(keep_recent=2),
    TieredCompact(keep_recent=0),
    TieredCompact(keep_recent=1, phase_thresholds=(0.5, 0.7, 0.9)),
]
budgets = st.builds(ContextBudget, tokens=st.integers(1, 3000), overhead=st.integers(0, 500), reasoning=st.booleans())
each = pytest.mark.parametrize("compactor", COMPACTORS, ids=repr)


def protected(history: History) -> list[object]:
    return [m for m in history if isinstance(m, System) or (isinstance(m, User) and m.kind is Kind.USER_INPUT)]


@each
@given(history=histories(), budget=budgets)
def test_it_fits_or_says_that_nothing_can(compactor: Compactor, history: History, budget: ContextBudget) -> None:
    match compactor(history, budget):
        case Compacted(history=shorter):
            assert estimate(shorter, budget) <= max(budget.tokens, budget.trigger)
        case CannotFit(tokens=tokens):
            assert tokens > budget.tokens


@each
@given(history=histories(), budget=budgets)
def test_it_never_grows_and_makes_progress_or_stops(
    compactor: Compactor, history: History, budget: ContextBudget
) -> None:
    result = compactor(history, budget)
    if isinstance(result, Compacted):
        if result.phase == 0:
            assert result.history == history
        else:
            finely = replace(budget, tokens_per_character=1.0)  # a token is several characters: the cut may be less
            assert estimate(result.history, finely) < estimate(history, finely)


@each
@given(history=histories(), budget=budgets)
def test_what_the_user_asked_and_pins_stay_as_they_are(
    compactor: Compactor, history: History, budget: ContextBudget
) -> None:
    result = compactor(history, budget)
    if isinstance(result, Compacted):
        assert protected(result.history) == protected(history)
        pinned = [m for m in history if isinstance(m, Assistant) and m.pinned]
        assert [m for m in result.history if isinstance(m, Assistant) and m.pinned] == pinned


@each
@given(history=histories(), budget=budgets)
def test_order_is_kept(compactor: Compactor, history: History, budget: ContextBudget) -> None:
    result = compactor(history, budget)
    if isinstance(result, Compacted):
        ids = [m.call_id for m in history if isinstance(m, Tool)]
        left = [m.call_id for m in result.history if isinstance(m, Tool)]
        assert left == [i for i in ids if i in set(left)]


@each
@given(history=histories(), budget=budgets)
def test_no_call_is_parted_from_its_result(compactor: Compactor, history: History, budget: ContextBudget) -> None:
    result = compactor(history, budget)
    if isinstance(result, Compacted):
        assert_answered(result.history)


@each
@given(history=histories(), budget=budgets)
def test_it_is_deterministic_and_idempotent(compactor: Compactor, history: History, budget: ContextBudget) -> None:
    result = compactor(history, budget)
    assert compactor(history, budget) == result
    if isinstance(result, Compacted):
        assert compactor(result.history, budget) == Compacted(history=result.history, phase=0)


def assert_answered(history: History) -> None:
    """Every call is answered right after the message that made it, and every answer answers such a call (B4, B50)."""
    expected: list[str] = []
    for message in history:
        if isinstance(message, Tool):
            assert expected, f"{message.call_id} answers nothing"
            assert message.call_id == expected.pop(0)
            assert message.name
        else:
            assert not expected, f"{expected} are not answered"
            if isinstance(message, Assistant):
                expected = [call.id for call in message.calls]
    assert not expected
