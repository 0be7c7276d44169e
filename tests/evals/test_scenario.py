"""A scenario's world and its checks: what is no answer of a check is refused, not taken for one. What changes it."""

import asyncio
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec import Raw, structs

from forge import Workflow, tool
from forge.cli.run import imported
from forge.errors import DefinitionError
from forge.evals import Judgement, Scenario, Trajectory, World, judge
from forge.evals.series import judgement_of, scenario_digest
from forge.evals.suite import ALL
from stages.state import Completed


@tool
def end() -> str:
    """End."""
    return "ended"


WORLD = World(
    workflow=Workflow("w", tools=[end], terminal_tool="end"), messages=("Go.",), right=lambda _: "", harm=lambda _: ""
)
FINISHED = Trajectory(outcome=Completed(tool="end", value=Raw(b'"ended"')))


def answering(**answers: object) -> World:
    """The world, whose checks give these answers."""
    checks: dict[str, Any] = {name: lambda _, answer=answer: answer for name, answer in answers.items()}
    return replace(WORLD, **checks)


@pytest.mark.parametrize(
    ("world", "judgement"),
    [
        (WORLD, Judgement("right")),
        (answering(right="no capital"), Judgement("wrong", "no capital")),
        (answering(right="no capital", harm="paid twice"), Judgement("harm", "paid twice")),
    ],
)
def test_harm_weighs_more_than_what_is_wrong(world: World, judgement: Judgement) -> None:
    assert judge(world, FINISHED) == judgement


@pytest.mark.parametrize("answer", [True, False, None, 1])
@pytest.mark.parametrize("check", ["right", "harm"])
def test_a_check_that_returns_no_text_judges_nothing(check: str, answer: object) -> None:
    judged = judge(answering(**{check: answer}), FINISHED)
    assert judged.verdict == "unjudged"
    assert judged.why.endswith(f"it must return what is wrong as a text, empty if nothing is; it returned {answer}")


def test_a_check_that_ends_the_program_does_not() -> None:
    assert judge(replace(WORLD, right=lambda _: sys.exit(3)), FINISHED).verdict == "unjudged"


def test_a_check_that_hangs_judges_nothing() -> None:
    def right(_: Trajectory) -> str:
        Event().wait()
        return ""

    judged = asyncio.run(judgement_of(replace(WORLD, right=right), FINISHED, 0.05))
    assert judged == Judgement("unjudged", "a check took longer than 0.05 s")


@pytest.mark.parametrize("messages", ["Go.", (), (1,), None])
def test_messages_are_texts(messages: Any) -> None:
    with pytest.raises(TypeError, match=r"write messages=\(text,\)"):
        replace(WORLD, messages=messages)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("ideal_calls", "two", "ideal_calls is 'two'; it must be a whole number, at least 1"),
        ("ideal_calls", 0, "ideal_calls is 0; it must be a whole number, at least 1"),
        ("tags", "orders", "tags is 'orders'; it must be"),
        ("not_counted", ("plain",), "not_counted is"),
        ("seeds", 0, "seeds is 0"),
        ("name", "", "name: '' is not a valid name"),
        ("name", "refund order,x", "it needs at least one character, no comma"),
        ("tags", frozenset({" orders"}), "tags: ' orders' is not a valid name"),
    ],
)
def test_a_scenario_is_checked_when_it_is_made(field: str, value: Any, said: str) -> None:
    known: dict[str, Any] = {"name": "s", "about": "", "world": lambda _: WORLD, "ideal_calls": 1}
    with pytest.raises(DefinitionError, match=re.escape(said)):
        Scenario(**{**known, field: value})


MINE = '''
from collections import namedtuple
from functools import cache, partial
from tempfile import mkdtemp

from forge import Workflow, tool
from forge.evals import Scenario, World

TEXTS = {"lamp": "Order a lamp."}
UNUSED = 1
Order = namedtuple("Order", "number")


@tool(effect="read")
def stock() -> int:
    """In stock."""
    return LEFT


@cache
def table():
    return {"lamp": 3}


LEFT = table()["lamp"]


def ordering(what):
    @tool
    def order(number: int) -> str:
        """Order it."""
        return what

    return order


def world(seed, what="lamp"):
    folder = mkdtemp()
    Order(seed)

    def right(trajectory):
        return "" if trajectory.of("order") else "nothing was ordered"

    workflow = Workflow("w", tools=[stock, ordering(what)], terminal_tool="order")
    return World(workflow=workflow, messages=(TEXTS[what] + folder,), right=right)
'''


def digest(folder: Path, source: str) -> str:
    """That of the scenario in a file with this source."""
    folder.mkdir()
    (folder / "mine.py").write_text(source)
    world = imported(str(folder / "mine.py"), "it").world
    return scenario_digest(Scenario(name="s", about="", world=world, ideal_calls=1))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Order a lamp.", "Order two lamps.", False),
        ("Order it.", "Order a thing.", False),
        ("number: int", "number: float", False),
        ("nothing was ordered", "no order", False),
        ("return what", "return f'{what} is ordered'", False),
        ('"number")', '"number name", defaults=[""])', False),
        ('"read"', '"write"', False),
        ("return LEFT", "return LEFT - 1", False),
        ('"lamp": 3', '"lamp": 4', False),
        ("def right", "# what was asked for\n    def  right", True),
        ("def world", "\n\n@partial(lambda about, world: world, 'it')\ndef world", True),
        ("UNUSED = 1", "UNUSED = 5", True),
    ],
)
def test_a_digest_tells_whether_the_task_has_changed(tmp_path: Path, old: str, new: str, same: bool) -> None:
    digests = (digest(tmp_path / "old", MINE), digest(tmp_path / "new", MINE.replace(old, new)))
    assert "" not in digests
    assert (len({*digests}) == 1) == same


def unmade(seed: int, way: str = "") -> World:
    raise NotImplementedError


def given(way: str) -> Callable[[int], World]:
    def world(seed: int) -> World:
        return unmade(seed, way)

    return world


def test_what_a_world_is_given_beforehand_and_the_context_count() -> None:
    here = Scenario(name="s", about="", world=unmade, ideal_calls=1)
    worlds = [*(partial(unmade, way=way) for way in ("long", "short")), *map(given, ("long", "short"))]
    others = [structs.replace(here, world=world) for world in worlds]
    assert len({scenario_digest(one) for one in (here, *others, structs.replace(here, context_tokens=99))}) == 6


def test_without_a_source_there_is_no_digest() -> None:
    namespace: dict[str, Any] = {}
    exec("def world(seed): ...", namespace)  # noqa: S102 - as it is typed in
    for world in (namespace["world"], partial(namespace["world"], way="long")):
        assert scenario_digest(Scenario(name="s", about="", world=world, ideal_calls=1)) == ""


def test_every_scenario_of_the_suite_has_a_digest_of_its_own() -> None:
    assert len({scenario_digest(one) for one in ALL} - {""}) == len(ALL)
