"""New results against a baseline: what is a significant loss, and what cannot be compared."""

import pytest
from msgspec.structs import replace

from forge.errors import ForgeError
from forge.evals.check import Checked, check_against
from forge.evals.row import Row
from forge.evals.scenario import RunVerdict
from forge.evals.statistics import sentence
from tests.evals.rows import AUTO, PLAIN, configuration, row, rows_of, suite

R: RunVerdict = "right"
W: RunVerdict = "wrong"
GOOD = suite(seeds=10, skills={AUTO: 0.95})
BAD = suite(seeds=10, skills={AUTO: 0.6}, seed=8)


def findings(checked: Checked) -> set[str]:
    return {one.finding for one in checked.comparisons}


def test_a_loss_is_a_gain_from_the_other_side() -> None:
    lost, won = check_against(BAD, GOOD), check_against(GOOD, BAD)
    assert lost.losses
    assert not won.losses
    assert "better" in findings(won)
    assert sentence(lost.losses[0]).startswith("forge auto is worse than its baseline: in ")


def test_a_few_runs_that_went_wrong_are_no_loss() -> None:
    unlucky = [replace(one, verdict=W) if one.scenario == "act_or_not" and one.seed < 3 else one for one in GOOD]
    assert not check_against(unlucky, GOOD).losses


def test_a_scenario_lost_altogether_is_named() -> None:
    """In all others everything is as it was."""
    rows = rows_of(AUTO, [R] * 12, "triage") + rows_of(AUTO, [W, R] * 30, "other")
    lost = [replace(one, verdict=W) if one.scenario == "triage" else one for one in rows]
    assert {one.part for one in check_against(lost, rows).losses} == {"", "triage"}


def test_more_harm_is_a_loss() -> None:
    harmful = [replace(one, verdict="harm") if one.verdict != R or one.seed == 1 else one for one in GOOD]
    assert {one.quality for one in check_against(harmful, GOOD).losses} >= {"harm"}


def test_two_configurations_are_compared_each_with_its_own() -> None:
    both = {AUTO: 0.9, PLAIN: 0.3}
    checked = check_against(suite(seeds=2, skills=both), suite(seeds=2, skills=both, seed=9))
    assert {(one.first, one.second) for one in checked.comparisons} == {
        ("forge auto", "its baseline"),
        ("plain", "its baseline"),
    }


def test_what_only_one_of_the_files_has_is_said() -> None:
    checked = check_against(
        [*GOOD, row(PLAIN)],
        [*GOOD, row(AUTO, seed=77), *(row(configuration(mode=mode)) for mode in ("native", "prompted"))],
    )
    assert checked.notes == (
        "forge auto: 1 run left out, without a partner of the same scenario and seed",
        "in the results only, and not compared: plain",
        "in the baseline only, and not compared: forge native, forge prompted",
    )


def test_a_scenario_whose_code_was_changed_is_not_compared() -> None:
    new = [replace(one, scenario_digest="b" if one.scenario == "act_or_not" else "a") for one in GOOD]
    old = [replace(one, scenario_digest="a") for one in GOOD]
    checked = check_against(new, old)
    assert "forge auto: 10 pairs left out, as the scenario was changed in between: act_or_not" in checked.notes
    assert "act_or_not" not in {one.part for one in checked.comparisons}
    assert checked.comparisons[0].pairs == len(GOOD) - 10
    assert check_against(new, GOOD).comparisons[0].pairs == len(GOOD), "of older rows nothing is known"


def test_a_new_model_is_compared_with_the_old_one_where_each_file_has_but_one() -> None:
    new = configuration(mode="auto", model="qwen3")
    checked = check_against(rows_of(new, [R] * 9), rows_of(AUTO, [W] * 9))
    assert sentence(checked.comparisons[0]).startswith("forge auto is better than the baseline's forge auto (qwen): ")


@pytest.mark.parametrize(
    ("results", "baseline", "sentence"),
    [
        (
            rows_of(AUTO, [R], "a"),
            rows_of(AUTO, [R], "b"),
            r"the two files share no scenario: the results have a; .* b",
        ),
        (
            [replace(row(AUTO), scenario_digest="b")],
            [replace(row(AUTO), scenario_digest="a")],
            "every scenario that the two files share was changed since the baseline: basic_2step. Make the baseline",
        ),
        (rows_of(AUTO, ["unjudged"]), rows_of(AUTO, [R]), "a check raised in every pair of runs"),
        (
            [row(AUTO, seed=1)],
            [row(AUTO, seed=2)],
            "is for other seeds: it has seed 2, the results seed 1",
        ),
        ([row(AUTO), row(PLAIN)], [row(configuration(model="x"))], "share no configuration: the results have forge"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(
    results: list[Row], baseline: list[Row], sentence: str
) -> None:
    with pytest.raises(ForgeError, match=sentence):
        check_against(results, baseline)
