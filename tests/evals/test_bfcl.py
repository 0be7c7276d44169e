"""BFCL: its questions as scenarios, judged by its own checker; its conversations; a hostile call does nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bfcl import CATEGORIES, Checker, ensure_package, players, scenarios
from benchmarks.bfcl.checker import Simulation, python_calls
from benchmarks.bfcl.child_program import SimulatedCall
from forge.errors import ForgeError
from forge.evals import Judgement, Played, Scenario, play
from forge.interpreters.scripted import Line, call, calls
from stages.effect import RawCall, Reply
from stages.wire.target import Mode


@pytest.fixture(scope="module")
def package() -> Path:
    return ensure_package()


@pytest.fixture(scope="module")
def checker(package: Path) -> Checker:
    return Checker(package)


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def accepted(values: list[Any]) -> Any:
    """A value that BFCL accepts of an argument; a nested object has such lists of its own, `""` stands for none."""
    value = next(value for value in values if value != "")
    return {name: accepted(inner) for name, inner in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("category", ["simple_python", "multiple", "parallel", "parallel_multiple"])
def test_the_checker_takes_its_own_answers_and_no_others(package: Path, checker: Checker, category: str) -> None:
    name = f"BFCL_v4_{category}.json"
    questions, answers = lines(package / "data" / name), lines(package / "data" / "possible_answer" / name)
    for question, answer in zip(questions[:3], answers[:3], strict=True):
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


def played(checker: Checker, category: str, player: str, *script: Line, mode: Mode = "native") -> Judgement:
    """What a scripted model's answer to the category's first question comes to."""
    (scenario,) = scenarios(checker, [category])
    return play(scenario, script, player=players(checker)[player], mode=mode).judged


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


FILE = "BFCL_v4_multi_turn_base.json"

Turn = list[tuple[str, Any]]
"""The calls for a message of the user: names and arguments."""


@pytest.fixture(scope="module")
def scenario(checker: Checker) -> Scenario:
    (found,) = scenarios(checker, ["multi_turn_base"])
    return found


@pytest.fixture
def answer(package: Path, scenario: Scenario) -> Callable[[int], list[Turn]]:
    """The package's own answer to a question."""
    folders = (package / "data", package / "data" / "possible_answer")
    entries, answers = ({one["id"]: one for one in lines(folder / FILE)} for folder in folders)
    by_words = {tuple(said["content"] for (said,) in entry["question"]): name for name, entry in entries.items()}

    def found(seed: int) -> list[Turn]:
        truth = answers[by_words[scenario.world(seed).messages]]["ground_truth"]
        read = (python_calls(f"[{', '.join(turn)}]") for turn in truth)
        return [[(name, json.loads(arguments)) for name, arguments in turn] for turn in read]

    return found


def native(turn: Turn) -> list[Line]:
    return [calls(*turn), "Done."]


def constrained(turn: Turn) -> list[Line]:
    """A call a reply."""
    return [*(json.dumps([{"tool": name, "args": given}]) for name, given in turn), '{"answer":"Done."}']


def python(turn: Turn) -> list[Line]:
    written = (f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in turn)
    return [f"[{', '.join(written)}]", "Done."]


Written = Callable[[Turn], list[Line]]


@pytest.mark.parametrize(
    ("seed", "player", "mode", "written"),
    [
        (10, "forge", "native", native),
        (84, "forge", "constrained", constrained),
        (56, "server", "native", native),
        (144, "bfcl-prompt", "native", python),
    ],
)
def test_the_packages_own_answers_are_right(  # noqa: PLR0917 - a table of four columns, and fixtures
    scenario: Scenario,
    checker: Checker,
    answer: Callable[[int], list[Turn]],
    seed: int,
    player: str,
    mode: Mode,
    written: Written,
) -> None:
    """Of conversations that use all eight simulated classes between them."""
    turns = answer(seed)
    script = [line for turn in turns for line in written(turn)]
    played = play(scenario, script, seed=seed, player=players(checker)[player], mode=mode)
    assert played.judged.verdict == "right", played.judged.why
    assert [made.message for made in played.trajectory.calls] == [at for at, turn in enumerate(turns) for _ in turn]


def said(scenario: Scenario, checker: Checker, *script: Line, player: str = "forge", seed: int = 144) -> Played:
    """The script as an answer; to question 144 it is `add_to_watchlist(stock="ZETA")`, then `get_watchlist()`."""
    return play(scenario, script, seed=seed, player=players(checker)[player])


def test_one_wrong_call_is_wrong(scenario: Scenario, checker: Checker) -> None:
    look, done = call("get_watchlist"), "Done."
    other = said(scenario, checker, call("add_to_watchlist", stock="AAPL"), done, look, done)
    assert other.judged.why.startswith("multi_turn:instance_state_mismatch")
    blind = said(scenario, checker, call("pwd"), done, done, seed=129)  # it is to list the files
    assert blind.judged.why.startswith("multi_turn:execution_response_mismatch")
    assert said(scenario, checker, call("add_to_watchlist", stock="ZETA"), done, done).judged.why.startswith(
        "multi_turn:empty_turn_model_response"
    )


def test_a_reply_that_cannot_be_used_ends_its_turn_and_not_the_conversation(
    scenario: Scenario, checker: Checker
) -> None:
    added, look = call("add_to_watchlist", stock="ZETA"), call("get_watchlist")
    lost = said(scenario, checker, added, *[call("no_such_function")] * 4, look, "Done.")
    assert lost.judged.verdict == "right"


def test_a_turn_that_does_not_end_after_twenty_steps_is_no_outcome(scenario: Scenario, checker: Checker) -> None:
    endless = said(scenario, checker, *[call("no_such_function")] * 21, player="server")
    assert (endless.judged.verdict, endless.ended.end) == ("unfinished", "iterations")


@pytest.fixture
def simulation(package: Path) -> Simulation:
    classes = ["GorillaFileSystem", "MathAPI"]
    root = {"home": {"type": "directory", "contents": {"notes": {"type": "file", "content": "b"}}}}
    entry = {"id": "test_0", "involved_classes": classes, "initial_config": {"GorillaFileSystem": {"root": root}}}
    return Simulation(package=package, entry=entry, names=("echo", "cat", "power"))


def made(name: str, **arguments: object) -> SimulatedCall:
    return SimulatedCall(name=name, arguments=arguments)


def test_a_call_sees_what_those_before_it_have_done(simulation: Simulation) -> None:
    written, read = made("echo", content="x", file_name="notes"), made("cat", file_name="notes")
    assert simulation.last_result([written, read]) == '{"file_content": "x"}'
    assert simulation.last_result([read]) == '{"file_content": "b"}'


def test_hostile_arguments_are_only_text(simulation: Simulation, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    hostile = f"__import__('os').system('touch {mark}')"
    texts = (hostile, f"') or {hostile} or ('", f'"+{hostile}+"', f"{{{hostile}}}")
    given = [made("echo", content=text) for text in texts]
    assert json.loads(simulation.last_result(given[:2])) == {"terminal_output": texts[1]}
    named = [made("echo", **{text: 1}) for text in texts] + [made(text) for text in texts]
    assert simulation.wrong([[*given, *named, made("echo", content="safe")]], [["echo(content='safe')"]]) == ""
    assert "not defined" in simulation.last_result(named)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["__init__", "_load_scenario", "__class__", "pwd", "root"])
def test_only_functions_that_were_offered_are_run(simulation: Simulation, name: str) -> None:
    assert simulation.last_result([made(name)]) == f"Error during execution: name {name!r} is not defined"


def test_a_call_that_takes_too_long_is_stopped(simulation: Simulation) -> None:
    with pytest.raises(ForgeError, match="BFCL's code was stopped"):
        simulation.last_result([made("power", base=9, exponent=9**9)])
