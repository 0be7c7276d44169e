"""Definitions: what a workflow is made of, and every mistake said at once, before anything runs."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from returns.result import Result, Success

from forge import Agent, Calls, Context, Limits, Scripted, TieredCompact, Workflow, run_sync, tool
from forge.errors import DefinitionError
from forge.guardrails import Guardrails
from stages.effect import Price
from stages.halt import Halt
from stages.message import System, User
from stages.options import OptionError
from stages.order import Use
from stages.state import STAGES, State
from stages.tool import Prerequisite
from tests.flows import finish


@tool
def look(what: str) -> str:
    """Look something up."""
    return what


@tool
def write(what: str) -> str:
    """Write."""
    return what


async def slow(*_: object) -> None: ...


def three(arguments: object, results: object, state: object) -> None: ...


def problems(**options: object) -> tuple[str, ...]:
    settings: dict[str, object] = {"tools": [look, write, finish], "terminal_tool": "finish"} | options
    with pytest.raises(DefinitionError) as caught:
        Workflow("w", **settings)  # type: ignore[arg-type]  # wrong on purpose
    return caught.value.problems


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"terminal_tool": "end"}, "terminal_tool: there is no tool named 'end'; the tools are: look, write, finish"),
        ({"terminal_tool": ()}, "there is no terminal_tool"),
        ({"required_steps": ["lok"]}, "required_steps: there is no tool named 'lok'"),
        ({"required_steps": ["finish"]}, "finish: a terminal tool cannot be a required step"),
        ({"tools": [look, look, finish]}, "two tools are named look; name yours differently, as in tool(name=…)"),
        (
            {"tools": [tool(name="respond")(look.function)], "on_text": "respond"},
            'two tools are named respond, which on_text="respond" adds; name yours differently, as in tool(name=…)',
        ),
        ({"on_text": "acept"}, "on_text is 'acept'; it must be one of nudge, accept"),
        ({"tools": [tool(effect="reed")(look.function), finish]}, "effect is 'reed'; it must be one of read, write"),  # type: ignore[call-overload]  # wrong on purpose
        ({"tools": [look, 3]}, "tools[1] is 3; it must be a Tool or a function"),
        ({"terminal_tool": 5}, "terminal_tool is 5; it must be a string or a list of strings"),
        ({"grounded": {"look": {"what": 3}}}, "grounded['look']['what'] is 3; it must be a string or a list"),
        ({"order": [3]}, "order[0] is 3; it must be a Use"),
        ({"guards": [slow]}, "guards[0]: slow is async, but it is called without await; define it with `def`"),
        (
            {"guards": [lambda calls: []]},
            "guards[0]: <lambda> cannot be called as <lambda>(state, calls): too many positional arguments",
        ),
        (
            {"completion_checks": {"finish": slow}},
            "completion_checks['finish']: slow is async, but it is called without await; define it with `def`",
        ),
        (
            {"completion_checks": {"finish": three}},
            "completion_checks['finish']: three cannot be called as three(arguments): missing a required argument: ",
        ),
        ({"nudges": {"step": lambda: "No."}}, "nudges['step']: <lambda> cannot be called as <lambda>(correction): too"),
        ({"tools": [tool(prerequisites=["loo"])(look.function), finish]}, "its prerequisite 'loo' is not a tool"),
        ({"tools": [tool(prerequisites=["finish"])(look.function), finish]}, "its prerequisite finish is terminal"),
        (
            {"order": [Use(tool="write", after=["look"]), Use(tool="look", after=["write"])]},
            "look: it needs write, which needs look: neither can be called",
        ),
        (
            {"tools": [look, tool(prerequisites=[Prerequisite(tool="look", match_arg="who")])(write.function), finish]},
            "match_arg 'who' is not an argument of write",
        ),
        (
            {
                "tools": [
                    tool(prerequisites=["write"])(look.function),
                    tool(prerequisites=["look"])(write.function),
                    finish,
                ]
            },
            "neither can be called",
        ),
        ({"tools": [tool(name="look up")(look.function), finish]}, "a name is a letter"),
        ({"tools": [tool(timeout=0)(look.function), finish]}, "timeout is 0; it must be a number, over 0"),
        ({"without": 3}, "without is 3; it must be a string or a list of strings"),
        ({"without": [1]}, "without[0] is 1; it must be a string"),
        ({"without": "last_cal"}, "without: there is no guard or narrowing 'last_cal'; there are: required_steps,"),
        ({"without": "last_cal"}, "Did you mean last_call?"),
    ],
)
def test_a_mistake_is_said_in_a_sentence(options: dict[str, object], says: str) -> None:
    assert any(says in problem for problem in problems(**options)), problems(**options)


@pytest.mark.parametrize(
    ("group", "options", "says"),
    [
        (Limits, {"max_iterations": 0}, "max_iterations is 0; it must be a whole number, at least 1 or None"),
        (Limits, {"max_seconds": -1.5}, "max_seconds is -1.5; it must be a number, over 0"),
        (Limits, {"max_seconds": float("nan")}, "max_seconds is nan; it must be a number, over 0 or None"),
        (Limits, {"price": Price(prompt=-1)}, f"price is {Price(prompt=-1)}; no price is negative"),
        (Limits, {"max_cost": 1.0}, "max_cost needs price="),
        (Context, {"compactor": TieredCompact}, "compactor is the class TieredCompact; write TieredCompact()"),
        (Context, {"compact_at": 0.5, "compact_to": 0.6}, "compact_to is 0.6; it cannot be over compact_at, which is"),
        (Context, {"reasoning_replay": "all"}, "reasoning_replay is 'all'; it must be one of none, keep-last, full"),
        (Calls, {"max_parallel": 0}, "max_parallel is 0; it must be a whole number, at least 1"),
    ],
)
def test_a_group_of_options_looks_at_them_when_it_is_made(
    group: Callable[..., object], options: dict[str, object], says: str
) -> None:
    with pytest.raises(OptionError) as caught:
        group(**options)
    assert any(problem.startswith(f"{group.__name__}: {says}") for problem in caught.value.problems), caught.value


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (problems, {"max_iterations": 5, "batch": "all"}, "write limits=Limits(max_iterations=5)\nwrite calls=Calls"),
        (problems, {"max_iteration": 5}, "Did you mean limits=Limits(max_iterations=…)?"),
        (
            problems,
            {"required_step": "look"},
            "there is no option 'required_step'. Did you mean required_steps? There",
        ),
        (problems, {"foo": 1, "required_steps": "lok"}, ", calls\nrequired_steps: there is no tool named 'lok'"),
        (problems, {"foo": 1, "on_text": "acept"}, "calls\non_text is 'acept'; it must be one of nudge"),
        (Limits, {"max_iteration": 5, "max_tokens": 0}, "price, max_retries_per_step"),
        (Limits, {"max_iteration": 5, "max_tokens": 0}, "\nLimits: max_tokens is 0"),
        (Guardrails, {"max_tool_errors": 1}, "write limits=Limits(max_tool_errors=1)"),
        (partial(Agent, "a", backend=Scripted([])), {"recall": True}, "write context=Context(recall=True)"),
        (partial(Agent, "a", backend=Scripted([])), {"instruction": ""}, "Did you mean instructions?"),
        (partial(Agent, "a", backend=Scripted([])), {"system_prompt": ""}, "Did you mean instructions?"),
        (problems, {"instructions": ""}, "Did you mean system_prompt?"),
        (Guardrails, {"required_step": "look"}, "Did you mean required_steps?"),
        (Guardrails, {"grounded": {}, "tools": [look]}, "write workflow=Workflow(grounded={})"),
        (run_sync, {"grounded": {}}, "write workflow=Workflow(grounded={})"),
    ],
)
def test_an_option_that_there_is_not_is_answered_with_what_to_write(
    make: Callable[..., object], options: dict[str, object], says: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(says)):
        make(**options)


def test_all_mistakes_are_said_at_once() -> None:
    def bare(what) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 - wrong on purpose
        return str(what)

    found = problems(tools=[look, bare, finish], required_steps=["nope"], terminal_tool="end", limits=3)
    assert len(found) == 4
    assert any("bare" in problem and "what" in problem for problem in found)


def test_mistakes_of_every_kind_are_said_at_once_and_none_that_only_follows_from_another() -> None:
    found = problems(limits=3, system_prompt=None, required_steps="x")
    assert [problem.split(" is ")[0] for problem in found[:2]] == ["system_prompt", "limits"]
    assert found[2:] == ("required_steps: there is no tool named 'x'; the tools are: look, write, finish",)
    with pytest.raises(OptionError) as caught:
        Limits(max_iterations="10", max_tokens=0, max_cost=1.0)  # type: ignore[arg-type]  # wrong on purpose
    assert [problem.split()[1] for problem in caught.value.problems] == ["max_iterations", "max_tokens", "max_cost"]
    (only,) = problems(terminal_tool=3, on_text="nudge")
    assert only.startswith("terminal_tool is 3")
    for make in (partial(Agent, "a", backend=Scripted([])), Guardrails):
        with pytest.raises(DefinitionError) as several:
            make(tools=[look], on_text="acept", required_steps=["lok"])  # type: ignore[arg-type]  # wrong on purpose
        assert [problem[:17] for problem in several.value.problems] == ["on_text is 'acept", "required_steps: t"]
    with pytest.raises(TypeError) as unknown:
        Workflow("w", tools=[finish], terminal_tol="finish")  # type: ignore[call-arg]  # wrong on purpose
    assert "nothing could end the run" not in str(unknown.value)


def test_a_tool_is_still_a_function() -> None:
    assert look("here") == "here"
    assert look.name == "look"


@pytest.mark.parametrize(
    ("template", "values", "filled"),
    [
        ("You are {role}.", {"role": "a clerk"}, "You are a clerk."),
        ('Reply as {"answer": 1} or {} or {1}.', {}, 'Reply as {"answer": 1} or {} or {1}.'),
        ("Write {{name}} for {name}.", {"name": "X"}, "Write {name} for X."),
        ("{a}{b}", {"a": "{b}", "b": "2"}, "{b}2"),
    ],
)
def test_a_system_prompt_is_filled_and_other_braces_stay(template: str, values: dict[str, str], filled: str) -> None:
    """JSON in the prompt used to be a KeyError."""
    workflow = Workflow("w", tools=[finish], terminal_tool="finish", system_prompt=template)
    assert workflow.start("Go.", values).history == (System(text=filled), User(text="Go."))


def test_a_missing_variable_is_named() -> None:
    workflow = Workflow("w", tools=[finish], terminal_tool="finish", system_prompt="{who} and {what}")
    with pytest.raises(DefinitionError) as caught:
        workflow.start("Go.", {"who": "I"})
    (problem,) = caught.value.problems
    assert problem.startswith(
        "the system prompt has the placeholder {what}, and prompt_vars has no 'what'; pass it (in a terminal, --var"
    )


def test_cut_results_are_recorded_only_where_something_judges_by_them() -> None:
    plain = Workflow("desk", tools=[look], terminal_tool="look")
    assert not plain.compiled.prompt.record

    def watching(state: State) -> Result[State, Halt]:
        return Success(state)

    watched = replace(plain, stages=[watching, *STAGES])
    assert watched.compiled.prompt.record
