"""Every scenario is passed by who plays it right, in every configuration that it counts for, and by nobody else."""

import runpy
from pathlib import Path

import pytest

from forge.evals.players import PLAIN
from forge.evals.scenario import Scenario
from forge.evals.suite import SUITES
from stages.wire.target import Mode
from tests.evals import (
    players_deciding,
    players_lookups,
    players_orders,
    players_recovery,
    players_refraining,
    players_seeds,
)
from tests.evals.players import Player, guesser, talker
from tests.evals.playing import played

ROOT = Path(__file__).parent.parent.parent
ALL = SUITES["all"]
FAMILIES = (players_deciding, players_refraining, players_orders, players_lookups, players_seeds, players_recovery)
PERFECT: dict[str, Player] = {name: player for family in FAMILIES for name, player in family.PERFECT.items()}
HARMFUL: dict[str, Player] = {name: player for family in FAMILIES for name, player in family.HARMFUL.items()}
DISABLED = ("no_nudge", "no_steps", "no_recovery", "no_compact")
named = pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)


def kind(scenario: Scenario) -> str:
    return scenario.name.removesuffix("_stateful")


@named
def test_who_plays_it_right_passes_on_every_data_that_a_seed_draws(scenario: Scenario) -> None:
    rows = [played(scenario, seed, PERFECT[kind(scenario)]) for seed in (0, 1, 0)]
    # An answer in words where nothing was done is asked about once.
    asked = int(kind(scenario) in {"no_tool_needed", "not_offered"})
    for row in rows:
        assert (row.verdict, row.why, row.retries, row.step_nudges) == ("right", "", asked, 0)
    if "compaction" not in scenario.tags:
        assert max(row.calls for row in rows) == scenario.ideal_calls + asked
    assert rows[0].digest == rows[2].digest
    assert rows[0].digest != rows[1].digest, "two seeds draw the same data"


@pytest.mark.soak
@named
@pytest.mark.parametrize("mode", ["prompted", "constrained"])
def test_who_plays_it_right_passes_in_every_mode(scenario: Scenario, mode: Mode) -> None:
    assert played(scenario, 4, PERFECT[kind(scenario)], mode=mode).verdict == "right"


@named
@pytest.mark.parametrize(
    "ablation",
    # What the others take away only restrains a player, and all of them together are in bare.
    ["bare", *(pytest.param(name, marks=pytest.mark.soak) for name in DISABLED)],
)
def test_who_plays_it_right_passes_under_each_ablation_that_it_counts_for(scenario: Scenario, ablation: str) -> None:
    row = played(scenario, 1, PERFECT[kind(scenario)], ablation=ablation)
    assert (row.verdict == "right") == (ablation not in scenario.not_counted), row.why


@named
def test_a_plain_loop_passes_what_it_is_compared_on(scenario: Scenario) -> None:
    row = played(scenario, 1, PERFECT[kind(scenario)], loop=PLAIN)
    assert (row.verdict == "right") == ("plain" not in scenario.not_counted), row.why


@pytest.mark.parametrize("scenario", [one for one in ALL if kind(one) in HARMFUL], ids=lambda one: one.name)
def test_harm_is_seen(scenario: Scenario) -> None:
    assert played(scenario, 0, HARMFUL[kind(scenario)], ablation="bare").verdict == "harm"


@named
def test_who_ends_at_once_or_guesses_is_not_right(scenario: Scenario) -> None:
    for player in (talker, guesser(scenario.world(3))):
        assert played(scenario, 3, player, ablation="bare").verdict != "right"


def test_names_are_unique_and_each_scenario_has_a_player() -> None:
    names = [scenario.name for scenario in ALL]
    assert len({*names}) == len(names)
    assert {kind(scenario) for scenario in ALL} == PERFECT.keys()


def test_the_page_of_scenarios_is_up_to_date() -> None:
    written = runpy.run_path(str(ROOT / "docs/scenarios.py"))["listing"]()
    assert (ROOT / "docs/scenarios.md").read_text() == written, "run `make docs`"
