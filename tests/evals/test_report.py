"""The report: its columns and matchups, what it claims and what it warns of, in a terminal's texts and in Markdown."""

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from forge.errors import ForgeError
from forge.evals.report import HEADINGS, labels, markdown, report_of
from forge.evals.row import Configuration, Row
from forge.evals.scenario import RunVerdict
from tests.evals.rows import AUTO, PLAIN, SCENARIOS, configuration, row, rows_of, suite

ROWS = suite(seeds=5)
BARE = configuration(ablation="bare")


@given(st.integers(0, 2**32))
def test_the_order_of_the_rows_does_not_matter(seed: int) -> None:
    rows = suite(seeds=2, skills={AUTO: 0.9, PLAIN: 0.3, configuration(mode="native"): 0.6})
    shuffled = list(rows)
    Random(seed).shuffle(shuffled)  # noqa: S311 - data
    assert report_of(shuffled) == report_of(rows)


def test_columns_stand_by_model_the_best_first() -> None:
    made = report_of(ROWS)
    places = [(one.configuration.model, one.metrics.right.count) for one in made.columns]
    assert places == sorted(places, key=lambda place: (place[0], -place[1]))
    assert {name for column in made.columns for name in column.runs} == set(SCENARIOS)


def test_a_reference_makes_a_small_family_of_its_own_that_needs_less() -> None:
    made, all_pairs = report_of(ROWS, against="forge auto"), report_of(ROWS)
    assert len(made.matchups) == 10
    assert made.matchups[0].right.family < all_pairs.matchups[0].right.family
    corrected = {(one.first.label, one.second.label): one.right.corrected for one in all_pairs.matchups}
    assert all(one.right.corrected <= corrected[one.first.label, one.second.label] for one in made.matchups)


def test_without_a_reference_each_models_best_column_is_shown_against_its_others() -> None:
    made = report_of(ROWS)
    assert len(made.matchups) == 10
    assert {one.first.label for one in made.matchups} == {
        "forge auto (qwen2.5-coder-0.5b)",
        "forge auto (qwen2.5-coder-1.5b)",
    }


def test_a_reference_that_has_no_runs_is_refused_with_what_there_is() -> None:
    with pytest.raises(ForgeError, match=r"there are no runs of 'forge atuo'; .* plain.* Did you mean forge auto\?"):
        report_of(ROWS, against="forge atuo")


def test_labels_tell_configurations_apart_by_what_differs() -> None:
    one = Configuration(model="a", backend="llama-server", mode="auto")
    assert set(labels([one, replace(one, mode="native")]).values()) == {"forge auto", "forge native"}
    assert labels([one, replace(one, model="b")])[one] == "forge auto (a)"
    assert labels([one, replace(one, backend="vllm")])[one] == "forge auto (llama-server)"
    warm = replace(one, temperature=0.7)
    assert labels([warm, replace(warm, mode="native")])[warm] == "forge auto"
    assert labels([warm, one])[warm] == "forge auto t=0.7"


def test_a_reference_needs_no_temperature_where_all_have_the_same() -> None:
    rows = suite(seeds=1, skills={replace(AUTO, temperature=0.7): 0.9, replace(PLAIN, temperature=0.7): 0.3})
    for name in ("forge auto", "forge auto t=0.7"):
        assert report_of(rows, against=name).matchups
    assert "1 seed each, temperature 0.7, 2026-11-18" in report_of(rows).facts


def test_of_a_series_that_was_broken_off_it_is_said_how_much_there_is() -> None:
    rows = [replace(one, planned=20) for one in rows_of(AUTO, ["right"] * 9)] + rows_of(PLAIN, ["wrong"] * 8)
    made = report_of(rows)
    assert made.facts.startswith("17 of 28 planned runs, 1 scenario by 2 configurations, 8 to 9 seeds each")
    assert "forge auto: incomplete, 9 of 20 planned runs: comparisons count those with a partner" in made.notes
    assert made.matchups[0].right.pairs == 8
    whole = report_of([replace(one, planned=9) for one in rows_of(AUTO, ["right"] * 9)])
    assert whole.facts.startswith("9 runs, ")
    assert not whole.notes


@pytest.mark.parametrize(("seeds", "pairs"), [(1, "1 pair"), (5, "5 pairs")])
def test_that_so_few_seeds_show_nothing_of_a_scenario_is_said_beside_them(seeds: int, pairs: str) -> None:
    made = report_of([*rows_of(AUTO, ["right"] * seeds), *rows_of(PLAIN, ["wrong"] * seeds)])
    assert f"with at most {pairs} of runs each" in markdown(made)
    assert {one.finding for one in made.matchups[0].scenarios} == {"no difference shown"}


def test_claims_are_sentences_with_their_counts_and_say_what_more_runs_would_show() -> None:
    told = [claim for claims in report_of(ROWS, against="forge auto").claims.values() for claim in claims]
    assert sum("is better than" in one for one in told) == 7
    for one in told:
        assert "%" not in one
        assert re.search(r"in \d+ of \d+ pairs|No difference in harm is shown", one), one
        assert not one.startswith("No difference shown") or re.search(
            r"more runs? of each would probably show a difference of", one
        ), one


def test_every_percentage_is_an_interval_with_counts() -> None:
    for share in re.findall(r".{14}\d+ %", markdown(report_of(ROWS)).replace("95 % intervals", "")):
        assert re.search(r"\d of \d+, \d+\N{EN DASH}\d+ %", share), share


def test_a_claim_by_scenario_names_the_scenarios() -> None:
    rows = [*rows_of(AUTO, ["right"] * 12, "triage"), *rows_of(PLAIN, ["wrong"] * 12, "triage")]
    (told,) = report_of(rows).claims.values()
    assert told[0].endswith("(p = 0.00049); by scenario: better in triage.")


def test_a_single_scenario_needs_as_much_as_all_of_them_together() -> None:
    rows = [*rows_of(AUTO, ["right"] * 6), *rows_of(PLAIN, ["wrong"] * 6), *rows_of(BARE, ["wrong"] * 6)]
    matchup = report_of(rows).matchups[0]
    assert matchup.right.family == 2
    assert [one.finding for one in matchup.scenarios] == [matchup.right.finding] == ["no difference shown"]


def test_what_to_know_of_the_rows_is_noted() -> None:
    repeated = [replace(row(PLAIN), seed=seed, commit="other", digest="same") for seed in range(5)]
    rows = [*rows_of(AUTO, ["right", "wrong", "unjudged"]), *repeated]
    told = list(report_of(rows).notes)
    assert told[0].startswith("plain: 4 of 5 runs only repeat another run of the same scenario, as at temperature 0")
    assert told[1].startswith("forge auto: 1 run left out, because nobody could judge: ")
    assert "plain and forge auto: 2 runs left out, without a partner of the same scenario and seed" in told
    assert told[-3:] == [
        "The runs are of several commits: a difference may be that of the commits",
        "Commit 68f308e: forge auto",
        "Commit other: plain",
    ]


def test_runs_that_timed_out_are_told_from_wrong_ones() -> None:
    late = [replace(row(AUTO, "triage", 1, "unfinished"), end="BackendFailed", unanswered="timeout")]
    late += [replace(row(AUTO, "triage", 2, "unfinished"), end="Timeout")]
    others = [row(AUTO, "triage", 3, "wrong"), replace(row(AUTO, "triage", 4, "harm"), unanswered="timeout")]
    made = report_of([*late, *others])
    assert "forge auto: 2 runs timed out, which may be the machine's fault, and count as not right" in list(made.notes)
    assert "| triage | 0/4, 1 harm, 2 timed out |" in markdown(made)


def test_runs_that_the_server_failed_in_are_told_from_those_that_forge_refused() -> None:
    failed = replace(row(AUTO, "triage", 1, "unfinished"), end="BackendFailed", unanswered="status")
    refused = replace(row(AUTO, "triage", 2, "unfinished"), end="BackendFailed")
    told = list(report_of([failed, refused]).notes)
    assert told == [
        "forge auto: 1 run ended in an error of the server, which may not be the model's fault, and counts as not right"
    ]


def test_one_right_run_is_not_better_than_most_of_many() -> None:
    nine: list[RunVerdict] = ["right"] * 9
    made = report_of([*rows_of(PLAIN, ["right"]), *rows_of(AUTO, [*nine, "wrong"])])
    assert [column.name for column in made.columns] == ["forge auto", "plain"]
    assert [(one.first.name, one.second.name) for one in made.matchups] == [("forge auto", "plain")]


@pytest.mark.parametrize(
    ("plain", "why"),
    [
        (rows_of(PLAIN, ["right"], "triage"), "they share no scenario and seed"),
        (rows_of(PLAIN, ["unjudged"]), "in every pair of runs a check raised"),
        ([replace(row(PLAIN), scenario_digest="b")], "in every pair of runs the scenario was changed"),
        (
            [replace(row(PLAIN), scenario_digest="b"), row(PLAIN, seed=1, verdict="unjudged")],
            "in every pair of runs a check raised or the scenario was changed",
        ),
    ],
)
def test_without_pairs_the_claim_says_why(plain: list[Row], why: str) -> None:
    made = report_of([*plain, *(replace(row(AUTO, seed=seed), scenario_digest="a") for seed in range(9))])
    told = next(iter(made.claims.values()))
    assert told[0] == f"Nothing can be said of forge auto and plain: {why}."


def test_the_pairs_of_each_model_are_those_of_configurations_of_that_model() -> None:
    rows = [
        row(configuration(player, model=model), seed=seed, verdict="right" if good else "wrong")
        for model in ("a", "b")
        for player, good in (("forge", True), ("plain", False))
        for seed in range(9)
    ]
    assert {one.right.family for one in report_of(rows).matchups} == {2}


def test_one_configuration_alone_has_a_report_without_comparisons() -> None:
    made = report_of(rows_of(AUTO, ["right", "wrong"]))
    assert made.matchups == ()
    assert "| forge auto | 1 of 2" in markdown(made)
    assert "claim" not in made.method
    assert "\n\n\n" not in markdown(made)


def test_the_documentation_explains_every_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evals.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| ([\w^, ]+) \|", page, re.MULTILINE)
    assert HEADINGS.keys() <= {name for names in explained for name in names.split(", ")}


def test_hostile_names_are_text_in_markdown() -> None:
    evil = "a|b</td><img src=x onerror=alert(1)>`*[x](http://evil)\nnew"
    text = markdown(report_of([row(AUTO, evil)]))
    assert "<img" not in text.replace("\\<", "")
    (line,) = [line for line in text.splitlines() if "onerror" in line]
    assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert "](" not in line.replace("\\]", "")
