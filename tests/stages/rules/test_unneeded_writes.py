"""Writes that nothing needs: withheld where required steps say what a workflow is about."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge import Limits, Workflow, resume_sync, run_sync, tool
from forge.errors import DefinitionError
from forge.guardrails import Guardrails, RunCalls
from forge.interpreters.scripted import Line, Scripted, call
from stages import events
from stages.effect import Said
from stages.message import Tool, UnknownCall
from stages.order import Use
from stages.rules import Rules, legal_tools, pending, unneeded_writes
from stages.state import Ledger, State, Success
from stages.tool import RECALL, Calculated, Grounded, Prerequisite, ToolEffect, ToolSpec
from tests.heard import heard_by

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


def test_of_a_tool_that_is_only_a_name_nobody_said_that_it_writes() -> None:
    """In a loop of one's own: forge cannot know, so it does not withhold; of a function it can."""
    names = Guardrails(tools=["look", "drop", "end"], required_steps=["look"], terminal_tool="end")
    assert isinstance(names.check(call("drop", order="A")), RunCalls)
    functions = Guardrails(tools=[look, drop, end], required_steps=["look"], terminal_tool="end")
    assert not isinstance(functions.check(call("drop", order="A")), RunCalls)
    named = Guardrails(tools=[look, drop, end], required_steps=["look"], optional_steps="drop", terminal_tool="end")
    assert isinstance(named.check(call("drop", order="A")), RunCalls)


# --- Writes that no rule speaks of, without steps: reachable, asked about, made once, with what was given

ASKED = "Tell Ana that I am late."
TELL = call("send_message", to="Ana", text="I am late.")
READ = call("read_messages", person="Ana")
NOTE = b"Nothing has been done so far. If this asks for something to be done, call the tool that does it."


class Desk:
    """An assistant with a look-up and a write; `done` is what was performed."""

    def __init__(self, **options: Any) -> None:
        self.done: list[str] = []

        @tool(effect="read")
        def read_messages(person: str) -> str:
            """Read the messages of a person."""
            self.done.append(f"read {person}")
            return f"{person}: see you soon"

        @tool
        def send_message(to: str, text: str) -> str:
            """Send a message."""
            self.done.append(f"{to}: {text}")
            return "sent"

        given = {"name": "desk", "on_text": "accept"} | options
        self.workflow = Workflow(tools=[read_messages, send_message], **given)
        self.events: list[events.Event] = []

    def run(self, *script: Line, mode: Any = "constrained") -> Scripted:
        model = Scripted(script, mode=mode)
        self.outcome = (
            run_sync(self.workflow, ASKED, backend=model, on_event=heard_by(self.events.append)).unwrap().outcome
        )
        return model


def offered(request: bytes) -> set[str]:
    """The tools of the request's schema, and `words`."""
    schema = request.partition(b'"response_format"')[2]
    names = {"read_messages", "send_message", "respond"}
    return {name for name in names if f'"{name}"'.encode() in schema} | ({"words"} if b'"answer"' in schema else set())


def test_a_plain_request_may_be_answered_by_any_tool_or_in_words() -> None:
    desk = Desk()
    (first, _) = desk.run(TELL, "Ana knows.").requests
    assert offered(first) == {"read_messages", "send_message", "words"}
    assert desk.done == ["Ana: I am late."]


@pytest.mark.parametrize("mode", ["native", "prompted", "constrained"])
def test_an_answer_without_a_call_is_asked_about_once(mode: str) -> None:
    desk = Desk()
    model = desk.run("Message sent.", TELL, "Ana knows.", mode=mode)
    assert NOTE in model.requests[1]
    assert b"Message sent." not in model.requests[1], "a model that sees its own answer repeats it"
    assert desk.done == ["Ana: I am late."]
    stubborn = Desk()
    assert len(stubborn.run("Message sent.", "I have no phone.", mode=mode).requests) == 2
    assert stubborn.outcome == Said(text="I have no phone.")


def test_a_call_that_answers_in_words_is_asked_about_too() -> None:
    desk = Desk(on_text="respond")
    desk.run(call("respond", message="Message sent."), TELL, call("respond", message="Ana knows."))
    assert desk.done == ["Ana: I am late."]


@pytest.mark.parametrize(
    ("options", "script"),
    [
        ({"without": ["ask_once"]}, ["Hello!"]),
        ({"optional_steps": ["send_message"]}, ["Hello!"]),
        ({"limits": Limits(max_iterations=2)}, ["Hello!"]),
        ({}, [TELL, "Ana knows."]),
        ({}, [call("send_message", to="<to>", text="Hm, yes."), "Who is meant?"]),
        ({}, [READ, "She is on her way."]),
    ],
    ids=["switched off", "a rule speaks of it", "no calls left", "it was made", "it was tried", "something was called"],
)
def test_no_answer_is_asked_about(options: dict[str, Any], script: list[Line]) -> None:
    assert len(Desk(**options).run(*script).requests) == len(script)


def test_a_write_is_made_once() -> None:
    desk = Desk()
    desk.run(TELL, TELL, "Ana knows.")
    assert desk.done == ["Ana: I am late."]


@pytest.mark.parametrize("answer", ["She is on her way.", call("respond", message="She is on her way.")])
def test_after_a_look_up_that_was_made_before_the_model_answers_and_is_asked_whether_that_is_all(answer: Line) -> None:
    desk = Desk(on_text="accept" if isinstance(answer, str) else "respond")
    model = desk.run(READ, READ, answer, answer)
    assert offered(model.requests[2]) == {"words"}
    assert offered(model.requests[3]) == {"read_messages", "send_message", "words"}
    assert NOTE in model.requests[3]
    assert [held for held in desk.events if isinstance(held, events.HeldBack)] == [
        events.HeldBack(turn=3, tools=("read_messages", "send_message"), by="answer_only")
    ]
    acting = Desk()
    acting.run(READ, READ, "Message sent.", TELL, "Ana knows.")
    assert acting.done == ["read Ana", "read Ana", "Ana: I am late."]


def test_a_call_that_was_made_again_may_be_meant_with_other_arguments() -> None:
    desk = Desk()
    desk.run(TELL, TELL, call("send_message", to="Ana", text="I will be there at noon."), "Ana knows.")
    assert desk.done == ["Ana: I am late.", "Ana: I will be there at noon."]
    stubborn = Desk(without=["ask_once"])
    model = stubborn.run(READ, READ, READ, "She is on her way.")
    assert [offered(request) == {"words"} for request in model.requests] == [False, False, False, True]


def test_what_is_withheld_is_told_once_with_what_to_do() -> None:
    desk = Desk(required_steps=["read_messages"])
    desk.run(READ, "She is on her way.")
    (held,) = (one for one in desk.events if isinstance(one, events.HeldBack))
    assert (held.tools, held.by) == (("send_message",), "withheld")
    assert held.what == "refused if called: send_message"
    assert "optional_steps" in held.why


def test_withholding_can_be_turned_off_like_any_guard() -> None:
    desk = Desk(required_steps=["read_messages"], without=["withheld"])
    (_, second, _) = desk.run(READ, TELL, "Ana knows.").requests
    assert offered(second) == {"read_messages", "send_message", "words"}
    assert desk.done == ["read Ana", "Ana: I am late."]


def test_a_tool_that_an_unknown_outcome_blocks_is_told_of() -> None:
    desk = Desk()
    unsure = UnknownCall(id="1", name="send_message", arguments="{}")
    state = desk.workflow.start(ASKED).note(in_doubt=(unsure,))
    heard = heard_by(desk.events.append)
    model = Scripted(["Was it sent?", "Was it sent?"], mode="constrained")
    resume_sync(desk.workflow, state, backend=model, on_event=heard).unwrap()
    assert offered(model.requests[0]) == {"read_messages", "words"}
    (held,) = (one for one in desk.events if isinstance(one, events.HeldBack))
    assert (held.what, held.by) == ("not offered: send_message", "unknown_outcome")
    assert "ask=" in held.why


def answer(text: str) -> str:
    """Answer."""
    return text


WITHHELD = "withheld from the model, because they write and no required step needs them: drop. "
UNRULED = "nothing but the user's message says when to call {}, and with what. "
UNDECLARED = 'no tool is declared with effect="read"'
HINTS: list[tuple[str, dict[str, Any], str]] = [
    ("withheld", {"tools": [look, drop, end], "required_steps": "look", "terminal_tool": "end"}, WITHHELD),
    ("a write", {"tools": [look, drop], "on_text": "accept"}, UNRULED.format("drop")),
    ("a write that ends", {"tools": [look, drop], "terminal_tool": "drop"}, UNRULED.format("drop")),
    ("both", {"tools": [look, drop, end], "terminal_tool": "end"}, UNRULED.format("drop, end")),
    ("undeclared", {"tools": [drop, end], "terminal_tool": "end"}, UNDECLARED),
    ("meant", {"tools": [look, drop], "on_text": "accept", "optional_steps": "drop"}, ""),
    ("meant, undeclared", {"tools": [drop, end], "terminal_tool": "end", "optional_steps": "drop"}, ""),
    ("a step", {"tools": [look, end], "required_steps": "look", "terminal_tool": "end"}, ""),
    ("grounded", {"tools": [look, drop], "terminal_tool": "drop", "grounded": {"drop": "order"}}, ""),
    ("approved", {"tools": [look, tool(approval=True)(answer)], "terminal_tool": "answer"}, ""),
    ("an order", {"tools": [look, end], "terminal_tool": "end", "order": [Use(tool="look", at_step=1)]}, ""),
    ("a guard", {"tools": [look, end], "terminal_tool": "end", "guards": [lambda _, calls: []]}, ""),
    ("only an answer", {"tools": [look, tool(effect="terminal")(answer)]}, ""),
    ("nothing to look up", {"tools": [drop], "terminal_tool": "drop"}, ""),
]


@pytest.mark.parametrize(("name", "options", "says"), HINTS, ids=[case[0] for case in HINTS])
def test_the_developer_is_warned_once_when_a_workflow_is_made(
    name: str, options: dict[str, Any], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        Workflow(f"hinted at {name}", **options)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [sentence.startswith(f"hinted at {name}: {says}") for sentence in said] == ([True] if says else [])


def test_what_is_withheld_is_shown() -> None:
    assert "withheld: drop" in repr(orders())
