"""A scenario's world and its checks: what is no answer of a check is refused, not taken for one."""

import asyncio
import re
import sys
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from msgspec import Raw

from forge import Workflow, tool
from forge.errors import DefinitionError
from forge.evals import Judgement, Scenario, Trajectory, World, judge
from forge.evals.series import judgement_of
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
