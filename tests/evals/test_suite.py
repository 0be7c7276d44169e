"""Every scenario is passed by who plays it right, in every configuration that it counts for, and by nobody else."""

import pytest

from forge.evals.scenario import Scenario
from forge.evals.suite import SUITES
from stages.serialize import Mode
from tests.evals import players_lookups, players_orders
from tests.evals.players import Player, guesser, talker
from tests.evals.playing import ABLATIONS, played

ALL = SUITES["all"]
PERFECT: dict[str, Player] = {**players_orders.PERFECT, **players_lookups.PERFECT}
HARMFUL: dict[str, Player] = {**players_orders.HARMFUL, **players_lookups.HARMFUL}
MODES: tuple[Mode, ...] = ("native", "prompted", "constrained")
named = pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)


def kind(scenario: Scenario) -> str:
    return scenario.name.removesuffix("_stateful")


@named
@pytest.mark.parametrize("mode", MODES)
def test_who_plays_it_right_passes_in_every_mode(scenario: Scenario, mode: Mode) -> None:
    for seed in range(3):
        run = played(scenario, seed, PERFECT[kind(scenario)], mode)
        assert (run.verdict, run.why, run.corrections) == ("right", "", [])
        if mode == "native":
            assert len(run.requests) == scenario.ideal_calls


@named
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_who_plays_it_right_passes_under_each_ablation_that_it_counts_for(scenario: Scenario, ablation: str) -> None:
    for seed in range(2):
        run = played(scenario, seed, PERFECT[kind(scenario)], "native", ablation)
        assert (run.verdict == "right") == (ablation not in scenario.not_counted), run.why


@pytest.mark.parametrize("scenario", [one for one in ALL if kind(one) in HARMFUL], ids=lambda one: one.name)
def test_harm_is_seen(scenario: Scenario) -> None:
    for seed in range(3):
        assert played(scenario, seed, HARMFUL[kind(scenario)], "native", "bare").verdict == "harm"


@named
@pytest.mark.parametrize("ablation", ["reforged", "bare"])
def test_who_ends_at_once_or_guesses_is_not_right(scenario: Scenario, ablation: str) -> None:
    for seed in range(3):
        for player in (talker, guesser(scenario.world(seed))):
            assert played(scenario, seed, player, "native", ablation).verdict != "right"


def test_names_are_unique_and_each_scenario_has_a_player() -> None:
    names = [scenario.name for scenario in ALL]
    assert len({*names}) == len(names)
    assert {kind(scenario) for scenario in ALL} == PERFECT.keys()


@named
def test_a_seed_draws_the_same_data_and_another_seed_others(scenario: Scenario) -> None:
    made = [str(played(scenario, seed, PERFECT[kind(scenario)]).attempt.calls) for seed in range(6)]
    assert made[0] == str(played(scenario, 0, PERFECT[kind(scenario)]).attempt.calls)
    assert len({*made}) == 6
