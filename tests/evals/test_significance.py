"""McNemar's test, Holm's correction, Wilson's interval and the number of runs: laws, and values from the literature."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from forge.evals.statistics import POWER, Proportion, can_be_shown, fewest_pairs, holm, mcnemar, pairs_needed, wilson

COUNTS = st.integers(0, 400)
P_VALUES = st.lists(st.floats(0, 1), max_size=30)


@given(COUNTS, COUNTS)
def test_wilsons_interval_contains_the_share_and_lies_between_none_and_all(count: int, more: int) -> None:
    low, high = wilson(count, count + more)
    assert 0 <= low <= high <= 1
    if count + more:
        assert low <= count / (count + more) <= high


def test_a_proportion_is_never_shown_without_its_counts_and_its_interval() -> None:
    assert str(Proportion(4, 5)) == "4 of 5, 38\N{EN DASH}96 %"
    assert str(Proportion(0, 0)) == "none"


def test_mcnemars_test_of_known_splits() -> None:
    # two-sided sign test: 2 (1/2)^n for n differing pairs on one side
    assert mcnemar(0, 0) == 1
    assert mcnemar(6, 0) == pytest.approx(1 / 32)
    assert mcnemar(9, 1) == pytest.approx(22 / 1024)


@given(st.floats(1e-6, 0.5))
def test_the_fewest_pairs_that_can_show_anything_are_the_fewest(alpha: float) -> None:
    fewest = fewest_pairs(alpha)
    assert can_be_shown(fewest, alpha)
    assert not can_be_shown(fewest - 1, alpha)


@given(P_VALUES)
def test_holm_keeps_the_order_and_never_makes_a_value_smaller(values: list[float]) -> None:
    corrected = holm(values)
    assert all(value <= after <= 1 for value, after in zip(values, corrected, strict=True))
    ranked = sorted(zip(values, corrected, strict=True))
    assert [after for _, after in ranked] == sorted(corrected)


def test_holm_of_known_values() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


@pytest.mark.parametrize(("difference", "differing", "alpha"), [(0.1, 0.1, 0.05), (0.5, 0.6, 0.005)])
def test_so_many_pairs_do_show_the_difference_about_as_often_as_promised(
    difference: float, differing: float, alpha: float
) -> None:
    pairs = pairs_needed(difference, differing, alpha)
    assert POWER - 0.1 < power(pairs, difference, differing, alpha) < POWER + 0.12


def power(pairs: int, difference: float, differing: float, alpha: float) -> float:
    """The exact probability that McNemar's test shows the difference, summed over every outcome."""
    share = (differing + difference) / (2 * differing)
    shown = 0.0
    for count, chance in enumerate(binom.pmf(range(pairs + 1), pairs, differing)):
        if chance > 1e-9:
            showing = [first for first in range(count + 1) if mcnemar(first, count - first) <= alpha]
            shown += chance * sum(binom.pmf(showing, count, share))
    return shown
