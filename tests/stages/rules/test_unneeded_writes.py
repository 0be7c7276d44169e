"""Writes that nothing needs: withheld where required steps say what a workflow is about."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.errors import DefinitionError
from forge.guardrails import Guardrails, RunCalls
from forge.interpreters.scripted import Scripted, call
from stages.message import Tool
from stages.order import Use
from stages.rules import Rules, legal_tools, pending, unneeded_writes
from stages.state import Ledger, State, Success
from stages.tool import RECALL, Calculated, Grounded, Prerequisite, ToolEffect, ToolSpec

N = Raw(b'{"type":"object","properties":{"n":{"type":"integer"}}}')


def spec(name: str, effect: ToolEffect = "write", **rules: object) -> ToolSpec:
    return ToolSpec(name=name, description="", parameters=N, effect=effect, **rules)  # type: ignore[arg-type]  # a test's


LOOK, WRITE, DROP, END = spec("look", "read"), spec("write"), spec("drop"), spec("end", "terminal")
RULES = Rules(tools=(LOOK, WRITE, DROP, END), required=("look",))
AFTER_WRITE = (Prerequisite(tool="write"),)

CASES: list[tuple[str, Rules, tuple[str, ...], tuple[str, ...]]] = [
    ("nothing is said of it", RULES, (), ("write", "drop")),
    ("it is named", RULES, ("write",), ("drop",)),
    ("it is required", replace(RULES, required=("look", "write")), (), ("drop",)),
    ("the end needs it", replace(RULES, tools=(LOOK, WRITE, replace(END, prerequisites=AFTER_WRITE))), (), ()),
    ("what is named needs it", replace(RULES, tools=(LOOK, WRITE, spec("b", prerequisites=AFTER_WRITE), END)), (), ()),
    (
        "it needs something itself",
        replace(RULES, tools=(spec("b", prerequisites=(Prerequisite(tool="look"),)),)),
        (),
        (),
    ),
    ("its values must be seen", replace(RULES, tools=(spec("b", grounded=(Grounded(argument="n"),)),)), (), ()),
    ("its values are calculated", replace(RULES, tools=(spec("b", calculated=(Calculated(argument="n"),)),)), (), ()),
    (
        "a value may come from it",
        replace(RULES, tools=(LOOK, WRITE, spec("b", grounded=(Grounded(argument="n", sources=("look", "write")),)))),
        (),
        (),
    ),
    ("a person is asked", replace(RULES, tools=(spec("b", approval=True),)), (), ()),
    ("a rule of order", replace(RULES, order=(Use(tool="drop", at_most=1),)), (), ("write",)),
    ("a rule of order of another", replace(RULES, order=(Use(tool="look", before=("drop",)),)), (), ("write",)),
    ("no tool says that it reads", replace(RULES, tools=(spec("look"), WRITE, END)), (), ()),
    ("only recall reads", replace(RULES, tools=(spec("look"), RECALL, WRITE, END)), (), ()),
    ("nothing is required", replace(RULES, required=()), (), ("write", "drop")),
    ("a number of uses is", replace(RULES, required=(), order=(Use(tool="look", at_least=1),)), (), ("write", "drop")),
    ("a rule of order of a tool that there is not", replace(RULES, order=(Use(tool="x"),)), (), ("write", "drop")),
]


@pytest.mark.parametrize(("rules", "named", "withheld"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_which_writes_nothing_needs(rules: Rules, named: tuple[str, ...], withheld: tuple[str, ...]) -> None:
    assert unneeded_writes(rules, named) == withheld


NAMES = ("a", "b", "c", "d")
specs = st.tuples(
    *(
        st.builds(
            spec,
            st.just(name),
            st.sampled_from(("read", "write")),
            prerequisites=st.lists(st.sampled_from(NAMES[:n]), max_size=2).map(
                lambda found: tuple(Prerequisite(tool=one) for one in found)
            )
            if n
            else st.just(()),
            grounded=st.just(()) | st.just((Grounded(argument="n", sources=("a", "b")),)),
        )
        for n, name in enumerate(NAMES)
    )
)


@given(specs=specs, required=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), named=st.sampled_from(NAMES))
def test_whoever_plays_it_right_finishes_though_writes_are_withheld(
    specs: tuple[ToolSpec, ...], required: list[str], named: str
) -> None:
    stated = Rules(tools=(*specs, END), required=tuple(required))
    rules = replace(stated, withheld=unneeded_writes(stated, (named,)))
    assert not {*rules.required, *rules.terminal, named} & {*rules.withheld}
    ledger = Ledger()
    for _ in range(len(NAMES) + 1):
        legal = [one.name for one in legal_tools(rules, State(history=(), ledger=ledger))]
        done = [success.name for success in ledger.successes]
        if not pending(rules, ledger):
            assert "end" in legal
            return
        (name, *_) = [one for one in legal if one not in done]  # there is always one that goes on
        ledger = replace(ledger, successes=(*ledger.successes, Success(name=name, arguments='{"n":1}')))
    raise AssertionError(f"still pending: {pending(rules, ledger)}")


ran: list[str] = []


@tool(effect="read")
def look(order: str) -> str:
    """Look."""
    ran.append("look")
    return f"{order}: 7"


@tool
def drop(order: str) -> str:
    """Drop."""
    ran.append("drop")
    return "dropped"


@tool
def end() -> str:
    """End."""
    return "over"


def orders(*optional: str) -> Workflow:
    return Workflow(
        "orders", tools=[look, drop, end], required_steps="look", optional_steps=optional, terminal_tool="end"
    )


SCRIPT = [call("look", order="A"), call("drop", order="A"), call("end")]


def test_a_model_that_calls_one_all_the_same_is_told_and_the_tool_does_not_run() -> None:
    ran.clear()
    run = run_sync(orders(), "Report on A.", backend=Scripted(SCRIPT)).unwrap()
    told = [m.text for m in run.state.history if isinstance(m, Tool)]
    assert ran == ["look"]
    assert told[1].startswith("[OrderError] drop was not run: it changes something, and no step of this task needs it.")


def test_a_constraint_does_not_offer_it_however_little_comes_of_the_replies() -> None:
    model = Scripted(["Hm.", "Hm.", call("look", order="A"), "Hm.", call("end")], mode="constrained")
    run_sync(orders(), "Report on A.", backend=model).unwrap()
    schemas = [request.partition(b'"response_format"')[2] for request in model.requests]
    assert len(schemas) == 5
    assert not any(b'"drop"' in schema for schema in schemas)


def test_a_workflow_that_names_it_has_it_run() -> None:
    ran.clear()
    run_sync(orders("drop"), "Drop A.", backend=Scripted(SCRIPT)).unwrap()
    assert ran == ["look", "drop"]
    with pytest.raises(DefinitionError, match=r"optional_steps: there is no tool named 'drip'; the tools are: look"):
        orders("drip")


def test_the_developer_is_told_once_what_is_withheld_and_what_to_write(caplog: pytest.LogCaptureFixture) -> None:
    made = Workflow("told once", tools=[look, drop, end], required_steps="look", terminal_tool="end")
    with caplog.at_level(logging.WARNING, "forge"):
        for _ in range(2):
            run_sync(made, "Report on A.", backend=Scripted(SCRIPT))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("told once: withheld from the model")
    assert "drop" in said
    assert "optional_steps" in said
    assert "withheld: drop" in repr(made)


def test_of_a_tool_that_is_only_a_name_nobody_said_that_it_writes() -> None:
    """In a loop of one's own: forge cannot know, so it does not withhold; of a function it can."""
    names = Guardrails(tools=["look", "drop", "end"], required_steps=["look"], terminal_tool="end")
    assert isinstance(names.check(call("drop", order="A")), RunCalls)
    functions = Guardrails(tools=[look, drop, end], required_steps=["look"], terminal_tool="end")
    assert not isinstance(functions.check(call("drop", order="A")), RunCalls)
    named = Guardrails(tools=[look, drop, end], required_steps=["look"], optional_steps="drop", terminal_tool="end")
    assert isinstance(named.check(call("drop", order="A")), RunCalls)
