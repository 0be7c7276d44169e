"""Which runs there are: every configuration on every scenario and seed, each once, and none that nobody could pass."""

import pytest
from msgspec.structs import replace

from forge.errors import ForgeError
from forge.evals import Configuration, Player, RunEnd, Scenario, Task, World
from forge.evals.configurations import cells
from forge.evals.evaluation import Axes, configurations
from forge.evals.players import FORGE, PLAIN


def world(seed: int) -> World:
    raise NotImplementedError


async def never(task: Task) -> RunEnd:
    raise NotImplementedError


def scenario(name: str, *not_counted: str, tags: str = "") -> Scenario:
    counted = frozenset(not_counted)
    return Scenario(name=name, about="", world=world, ideal_calls=1, tags=frozenset(tags.split()), not_counted=counted)


OTHER = Player(name="other", about="", play=never, modes=("a", "b"), counted_like="plain")
PLAYERS = {player.name: player for player in (FORGE, PLAIN, OTHER)}
BASE = Configuration(model="m", backend="b", temperature=0.7)


def compared(**axes: tuple[str, ...]) -> list[str]:
    return [known.name for known in configurations(BASE, Axes(**axes), PLAYERS)]


def test_forge_is_combined_and_the_others_come_after_it() -> None:
    assert compared(mode=("auto", "native"), ablation=("reforged", "bare"), against=("plain", "other")) == [
        "forge auto t=0.7",
        "forge auto bare t=0.7",
        "forge native t=0.7",
        "forge native bare t=0.7",
        "plain t=0.7",
        "other a t=0.7",
        "other b t=0.7",
    ]
    assert compared(against=("other:b", "other")) == ["forge auto t=0.7", "other b t=0.7", "other a t=0.7"]
    assert compared(think=("off",), against=("plain",)) == ["forge auto off t=0.7", "plain off t=0.7"]


def test_a_few_of_them_are_chosen_by_name() -> None:
    both = ("reforged", "bare")
    assert compared(ablation=both, against=("plain", "other"), only=("other b", "forge auto bare")) == [
        "forge auto bare t=0.7",
        "other b t=0.7",
    ]
    with pytest.raises(ForgeError, match=r"no configuration 'bare'; there are: forge auto, forge auto bare, plain\."):
        compared(ablation=both, against=("plain",), only=("plain", "bare"))


def test_pairs_are_whole_early_and_what_nobody_could_pass_is_left_out() -> None:
    wanted = configurations(BASE, Axes(ablation=("", "bare"), against=("plain", "other:a")), PLAYERS)
    scenarios = (scenario("any"), scenario("long", "plain", "bare"), scenario("failing", "bare"))
    made = [(c.seed, c.scenario.name, c.configuration.name) for c in cells(wanted, scenarios, (1, 2), PLAYERS)]
    assert made[:8] == [
        (1, "any", "forge auto t=0.7"),
        (1, "any", "forge auto bare t=0.7"),
        (1, "any", "plain t=0.7"),
        (1, "any", "other a t=0.7"),
        (1, "long", "forge auto t=0.7"),
        (1, "failing", "forge auto t=0.7"),
        (1, "failing", "plain t=0.7"),
        (1, "failing", "other a t=0.7"),
    ]
    assert [entry[1:] for entry in made[8:]] == [entry[1:] for entry in made[:8]]


def test_no_two_runs_share_a_journal() -> None:
    models = [replace(BASE, model=model, temperature=warmth) for model in ("m", "m/x", "m:x") for warmth in (0.7, 0.71)]
    scenarios = (scenario("one-two"), scenario("one two"), scenario("../one"))
    paths = [cell.journal for known in models for cell in cells([known], scenarios, (1, 11), PLAYERS)]
    assert len({*paths}) == len(paths)
    assert all(path.count("/") == 1 and ".." not in path.split("/") for path in paths)
