"""Statistics of rows: intervals and tests, the metrics of a configuration, and what may be claimed of two."""

from itertools import product
from math import prod
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.stats import binom

from forge.evals.row import Row
from forge.evals.scenario import RunVerdict
from forge.evals.statistics import (
    POWER,
    Comparison,
    Proportion,
    can_be_shown,
    compare,
    family,
    fewest_pairs,
    holm,
    independent,
    mcnemar,
    metrics_of,
    paired,
    pairs_needed,
    sentence,
    wilson,
)
from tests.evals.rows import AUTO, PLAIN, row, rows_of

R: RunVerdict = "right"
W: RunVerdict = "wrong"
COUNTS = st.integers(0, 400)
P_VALUES = st.lists(st.floats(0, 1), max_size=30)
VERDICTS: st.SearchStrategy[RunVerdict] = st.sampled_from(["right", "wrong", "harm", "unfinished", "unjudged"])
SIDES = st.lists(st.tuples(VERDICTS, VERDICTS), max_size=40)


# Wilson's interval, McNemar's test, Holm's correction, the number of pairs.


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


# The metrics of a configuration.


def test_runs_are_counted_by_their_verdicts_and_ends() -> None:
    found = metrics_of(rows_of(AUTO, [R, R, W, "harm", "unfinished", "unjudged"]))
    assert (found.runs, found.unjudged, found.repeated) == (6, 1, 0)
    assert found.right == Proportion(2, 5)
    assert found.completed == Proportion(4, 5)
    assert found.harm == Proportion(1, 5)


def test_harm_that_did_not_come_to_an_end_is_not_completed() -> None:
    assert metrics_of([replace(row(verdict="harm"), end="Timeout")]).completed == Proportion(0, 1)


def test_a_run_with_an_answer_is_completed_whatever_its_player_calls_the_end() -> None:
    found = metrics_of([replace(made, end="calls") for made in rows_of(AUTO, [R, W])])
    assert found.completed == Proportion(2, 2)
    assert (found.seconds, found.wasted) == (2.5, 0.5)


def test_a_scenario_is_passed_if_all_its_seeds_are_right() -> None:
    rows = [*rows_of(AUTO, [R, R, R], "a"), *rows_of(AUTO, [R, W, R], "b"), *rows_of(AUTO, [R, R], "begun")]
    found = metrics_of(rows)
    assert (found.seeds, found.passed) == (3, Proportion(1, 2))


def test_calls_beyond_the_ideal_lower_the_efficiency_and_a_shorter_way_raises_it_above_one() -> None:
    def taking(*calls: int) -> float | None:
        return metrics_of(
            replace(row(seed=seed), ideal_calls=4, calls=made) for seed, made in enumerate(calls)
        ).efficiency

    assert taking(4, 4) == 1
    assert taking(4, 12) == 0.5
    assert taking(2, 2) == 2
    assert metrics_of(rows_of(AUTO, [W])).efficiency is None


def test_only_completed_runs_waste_calls_and_take_time() -> None:
    made = [
        replace(row(seed=1), calls=5, seconds=4.0),
        replace(row(seed=2, verdict="unfinished"), calls=15, seconds=300),
    ]
    found = metrics_of(made)
    assert (found.wasted, found.seconds, found.calls) == (2, 4.0, 10)


def test_the_cost_is_known_only_if_every_runs_is() -> None:
    assert metrics_of([replace(row(seed=seed), cost=0.25) for seed in range(4)]).cost == pytest.approx(1)
    assert metrics_of([replace(row(seed=1), cost=0.25), row(seed=2)]).cost is None


def test_without_runs_nothing_is_known() -> None:
    found = metrics_of([])
    assert (found.right, found.passed, found.seeds) == (Proportion(0, 0), Proportion(0, 0), 0)
    assert {found.efficiency, found.wasted, found.seconds, found.calls, found.tokens, found.cost} == {None}


# Two configurations compared: the pairs that count, the finding, and its sentence.


def both(verdicts: list[tuple[RunVerdict, RunVerdict]]) -> tuple[list[Row], list[Row]]:
    return rows_of(AUTO, [one for one, _ in verdicts]), rows_of(PLAIN, [other for _, other in verdicts])


def split(only_first: int, only_second: int, agreeing: int = 0, **more: str) -> Comparison:
    """A comparison with these numbers of pairs."""
    verdicts = [(R, W)] * only_first + [(W, R)] * only_second + [(R, R)] * agreeing
    made = compare("auto", "plain", paired(*both(verdicts)).pairs, "right")
    return replace(made, **more)


@given(SIDES)
def test_swapping_the_sides_swaps_better_and_worse(verdicts: list[tuple[RunVerdict, RunVerdict]]) -> None:
    first, second = both(verdicts)
    opposite = {"better": "worse", "worse": "better", "no difference shown": "no difference shown"}
    for quality in ("right", "harm"):
        (there,) = family([compare("a", "b", paired(first, second).pairs, quality)])
        (back,) = family([compare("b", "a", paired(second, first).pairs, quality)])
        assert opposite[there.finding] == back.finding
        assert (there.only_first, there.only_second, there.p) == (back.only_second, back.only_first, back.p)


@given(SIDES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(verdicts: list[tuple[RunVerdict, RunVerdict]], chance: Random) -> None:
    first, second = both(verdicts)
    made = paired(first, second)
    chance.shuffle(first)
    assert paired(first, second) == made
    assert paired(first, second[::-1]) == made
    assert independent(first) == independent(first[::-1])


@given(SIDES, SIDES)
def test_every_run_is_in_a_pair_or_counted_among_what_is_left_out(
    verdicts: list[tuple[RunVerdict, RunVerdict]], others: list[tuple[RunVerdict, RunVerdict]]
) -> None:
    first, second = both(verdicts)[0], both(others)[1]
    made = paired(first, second)
    assert len(first) + len(second) == 2 * (len(made.pairs) + made.unjudged + made.repeated) + made.alone


def test_only_runs_of_the_same_scenario_and_seed_are_pairs() -> None:
    made = paired([row(AUTO, "a", 1), row(AUTO, "a", 2), row(AUTO, "b", 1)], [row(PLAIN, "a", 2), row(PLAIN, "b", 2)])
    assert [(pair.first.scenario, pair.first.seed) for pair in made.pairs] == [("a", 2)]
    assert made.alone == 3


def test_a_check_that_raised_leaves_its_pair_out() -> None:
    made = paired(*both([(R, W), ("unjudged", W), (R, "unjudged"), ("unjudged", "unjudged")]))
    assert (len(made.pairs), made.unjudged) == (1, 3)


def repeated(of: list[Row]) -> list[Row]:
    """Runs that are all the first one, but for their seeds."""
    return [replace(of[0], seed=one.seed, seconds=one.seed / 7, digest="same") for one in of]


def test_runs_that_only_repeat_one_another_count_once() -> None:
    """Fifty repetitions at temperature 0 are one observation, however often they agree."""
    first, second = both([(R, W)] * 50)
    made = paired(repeated(first), repeated(second))
    assert (len(made.pairs), made.repeated) == (1, 49)
    assert len(independent(repeated(first))) == 1
    (one,) = family([compare("auto", "plain", made.pairs, "right")])
    assert one.finding == "no difference shown"


def test_digests_tell_repetitions_from_runs_that_look_alike() -> None:
    alike = repeated(rows_of(AUTO, [R] * 4))
    told_apart = [replace(one, digest=digest) for one, digest in zip(alike, "abab", strict=True)]
    assert len(independent(alike)) == 1
    assert [one.seed for one in independent(told_apart)] == [0, 1]


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (split(9, 0, 11), "auto is better than plain: in 9 of 20 {auto}, in 0 only plain (p = 0.0039)."),
        (split(1, 12), "auto is worse than plain: in 1 of 13 {auto}, in 12 only plain (p = 0.0034)."),
        (split(40, 0), "auto is better than plain: in 40 of 40 {auto}, in 0 only plain (p < 0.0001)."),
        (split(7, 3, 90), "{none}: in 7 of 100 {auto}, in 3 only plain (p = 0.34); about 220 more {of} 5 points."),
        (split(8, 6, 36), "{none}: in 8 of 50 {auto}, in 6 only plain (p = 0.79); about 830 more {of} 5 points."),
        (split(5, 0), "{none}: in 5 of 5 {auto}, in 0 only plain ({few}); about 1 more run of each {show} 100 points."),
        (split(0, 0, 300), "{none}: all 300 pairs agree; a difference of 5 points would probably have shown."),
        (split(9, 0, part="triage"), "auto is better than plain in triage: in 9 of 9 {auto}, in 0 only plain {p}."),
        (split(0, 9, quality="harm"), "auto does less harm than plain: in 0 of 9 {harm}, in 9 only plain {p}."),
        (split(9, 0, quality="harm"), "auto does more harm than plain: in 9 of 9 {harm}, in 0 only plain {p}."),
    ],
)
def test_the_sentence_says_what_may_be_claimed_and_on_what_it_rests(one: Comparison, words: str) -> None:
    whole = words.format(
        auto="pairs only auto was right",
        harm="pairs only auto did harm",
        none="No difference shown between auto and plain",
        few="nothing is shown by fewer than 6 differing pairs",
        p="(p = 0.0039)",
        of="runs of each would probably show a difference of",
        show="would probably show a difference of",
    )
    assert sentence(family([one])[0]) == whole


def test_a_family_is_corrected_for_its_size_and_says_so() -> None:
    first, *_ = family([split(9, 1), split(9, 2), split(3, 0)])
    assert first.corrected == pytest.approx(2 * mcnemar(9, 1))
    assert sentence(first).endswith("(p = 0.043, corrected for 2 comparisons).")
    assert {one.finding for one in family([split(9, 1)] * 3)} == {"no difference shown"}


def test_a_family_finds_a_difference_between_equals_no_more_often_than_it_says() -> None:
    """The exact probability over all splits that equals may come to, whatever the numbers of differing pairs."""
    for sizes in ((3, 6, 8), (6, 6, 7), (5, 10, 2), (8, 9, 12)):
        mistaken = sum(
            prod(binom.pmf(first, size, 0.5) for first, size in zip(outcome, sizes, strict=True))
            for outcome in product(*(range(size + 1) for size in sizes))
            if any(one.finding != "no difference shown" for one in family(_splits(outcome, sizes)))
        )
        assert 0 < mistaken <= 0.05


def _splits(outcome: tuple[int, ...], sizes: tuple[int, ...]) -> list[Comparison]:
    some = split(0, 0, 1)
    return [
        replace(some, pairs=size, only_first=first, only_second=size - first, p=mcnemar(first, size - first))
        for first, size in zip(outcome, sizes, strict=True)
    ]
