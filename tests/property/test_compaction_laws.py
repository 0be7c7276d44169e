"""The laws of D18, for every compactor that forge ships: those of the kit that users have for their own."""

import pytest
from hypothesis import strategies as st

from forge.testing import assert_compactor_laws
from stages.compaction import Compactor, ContextBudget, NoCompact, SlidingWindowCompact, TieredCompact

COMPACTORS: list[Compactor] = [
    NoCompact(),
    SlidingWindowCompact(keep_recent=2),
    SlidingWindowCompact(keep_recent=0),
    TieredCompact(keep_recent=2),
    TieredCompact(keep_recent=0),
    TieredCompact(keep_recent=1, drop_early=True),
    TieredCompact(keep_recent=1, phase_thresholds=(0.5, 0.7, 0.9)),
]
each = pytest.mark.parametrize("compactor", COMPACTORS, ids=repr)


@each
def test_it_keeps_the_laws(compactor: Compactor) -> None:
    assert_compactor_laws(compactor, max_examples=80)


@each
def test_it_keeps_them_whatever_the_budget(compactor: Compactor) -> None:
    """Budgets that nobody fitted to the history: far too small, far too large, with a margin as large as they are."""
    budgets = st.builds(
        ContextBudget, tokens=st.integers(1, 3000), overhead=st.integers(0, 500), reasoning=st.booleans()
    )
    assert_compactor_laws(compactor, budgets=budgets, max_examples=30)
