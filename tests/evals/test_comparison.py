"""Two configurations compared: the pairs that count, the finding, and the sentence that says what may be claimed."""

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
from forge.evals.statistics import Comparison, compare, family, independent, mcnemar, paired, sentence
from tests.evals.rows import AUTO, PLAIN, row, rows_of

VERDICTS: st.SearchStrategy[RunVerdict] = st.sampled_from(["right", "wrong", "harm", "unfinished", "unjudged"])
SIDES = st.lists(st.tuples(VERDICTS, VERDICTS), max_size=40)
R: RunVerdict = "right"
W: RunVerdict = "wrong"


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
