"""BFCL: its questions as scenarios, judged by its own checker; the players that take one turn."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bfcl import CATEGORIES, Checker, ensure_package, players, scenarios
from benchmarks.bfcl.checker import python_calls
from forge.evals.player import Task
from forge.evals.record import RunRecord
from forge.evals.scenario import Judgement, judge
from forge.interpreters.scripted import Line, Scripted
from forge.journal import read_journal
from stages.effect import RawCall, Replied, Reply
from stages.wire.target import Mode


@pytest.fixture(scope="module")
def package() -> Path:
    return ensure_package()


@pytest.fixture(scope="module")
def checker(package: Path) -> Checker:
    return Checker(package)


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()[:3]]


def accepted(values: list[Any]) -> Any:
    """A value that BFCL accepts of an argument; a nested object has such lists of its own, `""` stands for none."""
    value = next(value for value in values if value != "")
    return {name: accepted(inner) for name, inner in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("category", ["simple_python", "multiple", "parallel", "parallel_multiple"])
def test_the_checker_takes_its_own_answers_and_no_others(package: Path, checker: Checker, category: str) -> None:
    name = f"BFCL_v4_{category}.json"
    questions, answers = lines(package / "data" / name), lines(package / "data" / "possible_answer" / name)
    for question, answer in zip(questions, answers, strict=True):
        truth = answer["ground_truth"]
        calls = [
            {
                function.replace(".", "_"): {
                    name: accepted(values) for name, values in arguments.items() if [*values] != [""]
                }
            }
            for call in truth
            for function, arguments in call.items()
        ]
        assert checker.wrong(category, question["function"], calls, truth) == "", question["id"]
        assert checker.wrong(category, question["function"], calls[1:], truth) != ""


def test_every_question_of_every_category_is_a_workflow(checker: Checker) -> None:
    for scenario in scenarios(checker, CATEGORIES):
        assert scenario.seeds is not None
        sample = {1, scenario.seeds // 2, scenario.seeds}
        assert all(scenario.world(seed).messages[0] for seed in sample), scenario.name


def played(
    checker: Checker,
    category: str,
    player: str,
    *script: Line,
    mode: Mode = "native",
    journal: Path | None = None,
) -> Judgement:
    """What one turn with a scripted model on the category's first question comes to."""
    (scenario,) = scenarios(checker, [category])
    world, record = scenario.world(1), RunRecord()

    async def play() -> None:
        async with Scripted(script, mode=mode).connect() as connection:
            messages = world.messages
            task = Task(
                workflow=world.workflow, messages=messages, connection=connection, record=record, journal=journal
            )
            await players(checker)[player].play(task)

    asyncio.run(play())
    return judge(world, record.trajectory(1))


CALL = Reply(text="", calls=(RawCall(id="1", name="get_museum_artists", arguments='{"museum_name":"Louvre"}'),))
"""Of the tool that does not fit the first question of `irrelevance`."""


def test_where_no_function_fits_only_words_are_right(checker: Checker) -> None:
    assert played(checker, "irrelevance", "forge", "I cannot look that up.").verdict == "right"
    assert played(checker, "irrelevance", "forge", '{"answer":"No."}', mode="constrained").verdict == "right"
    assert played(checker, "irrelevance", "server", "No.").verdict == "right"
    assert played(checker, "irrelevance", "server", CALL).verdict == "wrong"
    assert played(checker, "irrelevance", "bfcl-prompt", "[]").verdict == "right"
    called = "[get_museum_artists(museum_name='Louvre')]"
    assert played(checker, "irrelevance", "bfcl-prompt", called).why == "it called get_museum_artists"


@pytest.mark.parametrize("player", ["forge", "server", "bfcl-prompt"])
def test_what_was_asked_and_answered_is_in_a_journal(checker: Checker, tmp_path: Path, player: str) -> None:
    played(checker, "irrelevance", player, "I cannot look that up.", journal=tmp_path / "run")
    journal = read_journal(tmp_path / "run.jsonl")
    (sent,) = journal.entries
    assert isinstance(sent.outcome, Replied)
    assert sent.outcome.reply.text == "I cannot look that up."


BOTH = [
    {"tool": "financial_compound_interest", "args": {"principle": 5000, "rate": 0.04, "time": 5, "n": 4}},
    {"tool": "financial_simple_interest", "args": {"principle": 5000, "rate": 0.035, "time": 5}},
]


@pytest.mark.parametrize("mode", ["constrained", "prompted"])
def test_several_calls_of_one_reply_are_judged_together(checker: Checker, mode: Mode) -> None:
    both, one = json.dumps(BOTH), json.dumps(BOTH[:1])
    assert played(checker, "parallel_multiple", "forge", both, mode=mode) == Judgement("right")
    assert played(checker, "parallel_multiple", "forge", one, mode=mode).verdict == "wrong"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (
            '[look(at="A", n=2), f.g(x=[1, {"a": True}])]',
            [("look", '{"at":"A","n":2}'), ("f_g", '{"x":[1,{"a":true}]}')],
        ),
        ("look(at='A')", [("look", '{"at":"A"}')]),
        ("```\n[look()]\n```", [("look", "{}")]),
        ("[]", []),
        ("None of the functions can be used.", []),
        ("[look(1)]", []),
        ("[look(at=__import__('os'))]", []),
        ("look(" * 5_000, []),
    ],
)
def test_python_calls_are_read_and_nothing_is_run(text: str, calls: list[tuple[str, str]]) -> None:
    assert python_calls(text) == calls
