"""The laws of compaction, for every compactor that forge ships: those of the kit that users have for their own."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from forge.testing import assert_compactor_laws, budgets, histories
from stages.compaction import Compacted, Compactor, ContextBudget, Meter, NoCompact, SlidingWindowCompact, TieredCompact
from stages.compaction.history import exchanges
from stages.message import History

COMPACTORS: list[Compactor] = [
    NoCompact(),
    SlidingWindowCompact(keep_recent=2),
    SlidingWindowCompact(keep_recent=0),
    TieredCompact(keep_recent=2),
    TieredCompact(keep_recent=0),
    TieredCompact(keep_recent=1),
    TieredCompact(keep_recent=1, phase_thresholds=(0.5, 0.7, 0.9)),
]
each = pytest.mark.parametrize("compactor", COMPACTORS, ids=repr)


@each
def test_it_keeps_the_laws(compactor: Compactor) -> None:
    assert_compactor_laws(compactor, max_examples=settings().max_examples // 3)


@each
def test_it_keeps_them_whatever_the_budget(compactor: Compactor) -> None:
    """Budgets that nobody fitted to the history: far too small, far too large, with a margin as large as they are."""
    budgets = st.builds(
        ContextBudget,
        tokens=st.integers(1, 3000),
        meter=st.builds(Meter, overhead=st.integers(0, 500)),
        reasoning=st.booleans(),
    )
    assert_compactor_laws(compactor, budgets=budgets, max_examples=settings().max_examples // 3)


@st.composite
def gone_on(draw: st.DrawFn) -> History:
    """A run that was compacted in its middle, perhaps more than once, and went on."""
    history: History = draw(histories(max_turns=14))
    shorter: History = ()
    starts = [start for start, _ in exchanges(history)]
    cuts = sorted(draw(st.sets(st.sampled_from(starts), min_size=1, max_size=3)))
    for start, end in zip([0, *cuts], [*cuts, len(history)], strict=True):
        shorter += history[start:end]
        result = draw(st.sampled_from((TieredCompact(), TieredCompact(keep_recent=0))))(shorter, draw(budgets(shorter)))
        shorter = result.history if isinstance(result, Compacted) and end < len(history) else shorter
    return shorter


@each
def test_it_keeps_them_with_what_earlier_compactions_have_left(compactor: Compactor) -> None:
    assert_compactor_laws(compactor, histories=gone_on(), max_examples=settings().max_examples // 3)
