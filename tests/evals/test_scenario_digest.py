"""The digest of a scenario: what changes it, and what does not."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from forge.cli.run import imported
from forge.evals.scenario import Scenario, World
from forge.evals.scenario_digest import scenario_digest
from forge.evals.suite import ALL

MINE = """
from beside import TEXT, limit
from json import dumps

PRICES = {"lamp": 20}
UNUSED = 1


def world(seed, way="short"):
    def right(trajectory):
        return checked(trajectory)

    return PRICES, TEXT, dumps(seed), right


def checked(trajectory):
    return limit(trajectory)
"""
BESIDE = """
TEXT = "Find the price."
OTHER = 2


def limit(trajectory):
    return LEAST < 3


LEAST = 1
"""


def digest(folder: Path, mine: str = MINE, beside: str = BESIDE) -> str:
    """That of the scenario in one file, with another in its folder."""
    folder.mkdir()
    (folder / "mine.py").write_text(mine)
    (folder / "beside.py").write_text(beside)
    world = imported(str(folder / "mine.py"), "it").world
    return scenario_digest(Scenario(name="it", about="", world=world, ideal_calls=1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return checked(trajectory)\n\n", "return not checked(trajectory)\n\n"),
        ("return limit(trajectory)", "return bool(limit(trajectory))"),
        ('"lamp": 20', '"lamp": 21'),
        ("Find the price.", "Look the price up."),
        ("LEAST < 3", "LEAST < 4"),
        ("LEAST = 1", "LEAST = 2"),
    ],
)
def test_whatever_the_world_uses_changes_it(tmp_path: Path, old: str, new: str) -> None:
    changed = digest(tmp_path / "new", MINE.replace(old, new), BESIDE.replace(old, new))
    assert changed != digest(tmp_path / "old")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("PRICES = {", "# what it costs\nPRICES  =  {"),
        ("UNUSED = 1", "UNUSED = 5"),
        ("OTHER = 2", "OTHER = 3"),
        ("def world", "\n\n\ndef world"),
    ],
)
def test_comments_layout_and_what_it_does_not_use_do_not(tmp_path: Path, old: str, new: str) -> None:
    changed = digest(tmp_path / "new", MINE.replace(old, new), BESIDE.replace(old, new))
    assert changed == digest(tmp_path / "old")


def test_how_a_world_is_listed_does_not_count(tmp_path: Path) -> None:
    source = "def listed(about):\n    return lambda world: world\n\n\n"
    one, other = (
        digest(tmp_path / about, source + MINE.replace("def world", f"@listed('{about}')\ndef world"))
        for about in ("one", "other")
    )
    assert one == other


def unmade(seed: int, way: str = "") -> World:
    raise NotImplementedError


HERE = Scenario(name="it", about="", world=unmade, ideal_calls=1)


def test_what_the_world_is_given_beforehand_and_the_context_count() -> None:
    given = [replace(HERE, world=partial(unmade, way=way)) for way in ("long", "short")]
    assert len({scenario_digest(one) for one in (HERE, *given, replace(HERE, context_tokens=99))}) == 4


def test_without_a_source_there_is_none() -> None:
    namespace: dict[str, Callable[[int], World]] = {}
    exec("def world(seed): ...", namespace)  # noqa: S102 - as it is typed in
    assert scenario_digest(replace(HERE, world=namespace["world"])) == ""


def test_every_scenario_of_the_suite_has_its_own() -> None:
    assert len({scenario_digest(one) for one in ALL} - {""}) == len(ALL)
