"""The metrics of a configuration's runs: what they count, and what they leave out."""

import pytest
from msgspec.structs import replace

from forge.evals.scenario import RunVerdict
from forge.evals.statistics import Proportion, metrics_of
from tests.evals.rows import AUTO, row, rows_of

R: RunVerdict = "right"
W: RunVerdict = "wrong"


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
