"""Writes that nothing needs: withheld where required steps say what a workflow is about, else not offered at first."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.errors import DefinitionError, ToolResolutionError
from forge.guardrails import Guardrails, RunCalls
from forge.interpreters.scripted import Scripted, call
from stages.ledger import Ledger, Success
from stages.message import Assistant, History, Kind, Tool, User
from stages.policy.escalation import offered_tools
from stages.policy.levels import Escalation
from stages.policy.order import Use
from stages.policy.rules import Rules, legal_tools, pending
from stages.policy.unneeded_writes import unneeded_writes
from stages.state import State
from stages.tool import Calculated, Grounded, Prerequisite, ToolEffect, ToolSpec
from stages.view.recall import RECALL

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
    if order == "missing":
        raise ToolResolutionError("there is no such order")
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


@tool
def cancel_order(order: str) -> str:
    """Cancel an order."""
    ran.append("cancel_order")
    return "cancelled"


@tool(approval=True)
def refund(order: str) -> str:
    """Give the money back."""
    return "done"


def chat(*tools: Callable[..., object], optional: tuple[str, ...] = (), **options: Any) -> Workflow:
    return Workflow("chat", tools=tools, optional_steps=optional, **({"on_text": "respond"} | options))


ASKED = "What is the capital of Portugal?"
SEVERAL = (look, drop, cancel_order)
ALL = {"look", "drop", "cancel_order", "respond"}
FIRST: list[tuple[str, Workflow, str, set[str]]] = [
    ("look or answer", chat(*SEVERAL), ASKED, {"look", "respond"}),
    ("the user names it", chat(*SEVERAL), "Cancel order 7.", {"look", "cancel_order", "respond"}),
    ("the user means it, and does not name it", chat(look, drop), "Cancel order 7.", {"look", "respond"}),
    ("nothing reads", chat(drop, cancel_order), ASKED, {"drop", "cancel_order", "respond"}),
    ("nothing of theirs reads", chat(drop, recall=True), ASKED, {"drop", "recall", "respond"}),
    ("the workflow names it", chat(*SEVERAL, optional=("drop",)), ASKED, {"look", "drop", "respond"}),
    ("a person is asked", chat(look, drop, refund), ASKED, {"look", "refund", "respond"}),
    (
        "a rule of order, and what reads may not come first",
        chat(look, drop, cancel_order, order=[Use(tool="look", after=("drop",))]),
        ASKED,
        {"drop", "cancel_order", "respond"},
    ),
    ("it is switched off", chat(*SEVERAL, escalation=Escalation(look_first=False)), ASKED, ALL),
    ("the end is a tool of theirs", chat(*SEVERAL, end, on_text="nudge", terminal_tool="end"), ASKED, {"look", "end"}),
]


@pytest.mark.parametrize(("workflow", "message", "names"), [case[1:] for case in FIRST], ids=[c[0] for c in FIRST])
def test_without_required_steps_the_first_reply_is_words_or_a_look_up_unless_the_user_names_a_write(
    workflow: Workflow, message: str, names: set[str]
) -> None:
    assert {one.name for one in offered_tools(workflow.rules, workflow.start(message))} == names


@pytest.mark.parametrize(
    "first",
    [
        pytest.param([call("look", order="A")], id="a look-up"),
        pytest.param([call("look", order="missing")], id="a look-up in vain"),
        pytest.param(["Let me see."], id="words where a tool is wanted"),
        pytest.param([""], id="nothing"),
        pytest.param([call("lock", order="A")], id="a tool that there is not"),
    ],
)
def test_from_the_second_reply_on_a_constraint_offers_them_all(first: list[Any]) -> None:
    ran.clear()
    model = Scripted([*first, call("drop", order="A"), call("respond", message="Done.")], mode="constrained")
    run_sync(chat(*SEVERAL), "Get rid of order A.", backend=model).unwrap()
    schemas = [request.partition(b'"response_format"')[2] for request in model.requests]
    assert [b'"drop"' in schema for schema in schemas] == [False, True, True]
    assert ran[-1] == "drop"


def test_it_is_an_offer_so_a_call_of_one_that_was_not_offered_runs() -> None:
    ran.clear()
    model = Scripted([call("drop", order="A"), call("respond", message="Done.")])
    run_sync(chat(*SEVERAL), "Get rid of order A.", backend=model).unwrap()
    assert ran == ["drop"]


def test_what_was_said_earlier_in_the_conversation_is_a_reply_too() -> None:
    talk: History = (User(text=ASKED), Assistant(text="Lisbon."), User(text="Now get rid of order A."))
    assert {t.name for t in offered_tools(chat(*SEVERAL).rules, State(history=talk))} == ALL
    summed = (User(text="An order was dropped.", kind=Kind.SUMMARY),)
    acted = Ledger(turn=1, progress=1, successes=(Success(name="drop", arguments="{}"),))
    assert {t.name for t in offered_tools(chat(*SEVERAL).rules, State(history=summed, ledger=acted))} == ALL


@pytest.mark.parametrize(("on_text", "words"), [("respond", b'"respond"'), ("accept", b'"answer"')])
def test_the_constraint_of_a_first_reply_leaves_room_for_words(on_text: str, words: bytes) -> None:
    model = Scripted([call("look", order="A")], mode="constrained")
    run_sync(chat(*SEVERAL, on_text=on_text, max_iterations=1), ASKED, backend=model)
    schema = model.requests[0].partition(b'"response_format"')[2]
    assert words in schema
    assert b'"look"' in schema
    assert b'"cancel_order"' not in schema
