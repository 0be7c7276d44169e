"""Guards by themselves: a state and calls in, a verdict out."""

import re
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from forge.testing import assert_guard_laws
from stages.effect import Budget
from stages.guards import (
    GUARDS,
    PastCall,
    calculated,
    completion,
    grounding,
    guards_of,
    no_echoes,
    no_placeholders,
    no_unseen_values,
    order,
    past_calls,
    prerequisites,
    repetition,
    required_steps,
    tool_calls,
    withheld,
)
from stages.halt import BudgetSpent
from stages.message import Assistant, History, Kind, System, Tool, ToolCall, UnknownCall, User
from stages.objection import Guard, Incomplete, NeedsDecision, Objection, Stop, Verdict, render
from stages.order import Use
from stages.rules import Limits, Rules
from stages.state import Cleared, Ledger, State, Success
from stages.tool import Calculated, Grounded, ToolSpec
from tests.flows import Desk

RULES = Desk().workflow.rules


def made(name: str, arguments: str = "{}", number: int = 1) -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, arguments=arguments)


def after(*done: str, **counts: int) -> State:
    successes = tuple(Success(name=name, arguments='{"what":"a"}') for name in done)
    return State(history=(), ledger=Ledger(successes=successes, **counts))  # type: ignore[arg-type]  # counts are ints


def test_a_prerequisite_of_unknown_outcome_is_for_a_person_to_decide() -> None:
    tools = (replace(RULES.tools[0], effect="write"), *RULES.tools[1:])
    begun = after().note(in_doubt=(made("look", '{"what":"a"}', number=7),))
    (objection,) = refused(prerequisites(replace(RULES, tools=tools))(begun, (made("write", '{"what":"a"}'),)))
    assert objection.wrong == NeedsDecision(tools=("look",), allowed=("fail",))
    assert "It needs look, and it is unknown whether that took effect: a person has to find out." in render(objection)


def refused(verdict: Verdict) -> Sequence[Objection]:
    assert not isinstance(verdict, Stop)
    return verdict


TEXT = Raw(b'{"type":"object","properties":{"what":{"type":"string"}}}')
LOOK = ToolSpec(name="look", description="", parameters=TEXT, effect="read")
MADE_UP = '{"what":"<what>"}'
OBJECTING = (
    (ToolSpec(name="write", description="", parameters=TEXT), MADE_UP, "is a placeholder, not a value"),
    (
        ToolSpec(name="write", description="", parameters=TEXT, grounded=(Grounded(argument="what"),)),
        '{"what":"b"}',
        '"b"',
    ),
    (
        ToolSpec(name="write", description="", parameters=TEXT, calculated=(Calculated(argument="what"),)),
        '{"what":"9 + 9"}',
        "neither a result nor the user gave 9",
    ),
)


@pytest.mark.parametrize("unsure", [False, True])
@pytest.mark.parametrize(("tool", "arguments", "said"), OBJECTING)
def test_a_tool_with_a_call_of_unknown_outcome_is_refused_without_being_proposed(
    tool: ToolSpec, arguments: str, said: str, *, unsure: bool
) -> None:
    rules = Rules(tools=(LOOK, tool))
    found = Tool(call_id="call_1", name="look", text='{"what":"C-311","number":7}')
    state = State(
        history=(Assistant(calls=(made("look"),)), found),
        ledger=Ledger(in_doubt=(UnknownCall(id="call_0", name="write", arguments='{"what":"a"}'),) if unsure else ()),
    )
    (text,) = [
        render(one)
        for guard in guards_of(rules)
        if not isinstance(verdict := guard(state, (made("write", arguments, 2),)), Stop)
        for one in verdict
    ]
    assert said in text
    assert (re.search(r"[Cc]all write( again)?\b", text) is None) == unsure, text


# --- The limit of tool calls: a reply is run whole or not at all


LOOKS = tuple(ToolCall(id=f"call_{n}", name="look", arguments="{}") for n in range(3))


@pytest.mark.parametrize("left", [None, 3, 4])
def test_as_many_calls_as_are_left_may_run(left: int | None) -> None:
    assert tool_calls(RULES)(State(history=(), ledger=Ledger(budget=Budget(tool_calls=left))), LOOKS) == []


@pytest.mark.parametrize("left", [0, 2])
def test_one_more_ends_the_run_before_any_of_them(left: int) -> None:
    done = (Success(name="look", arguments="{}"),)
    state = State(history=(), ledger=Ledger(budget=Budget(tool_calls=left), turn=4, successes=done))
    halt = BudgetSpent(what="tool calls", turns=4, completed=("look",), pending=())
    assert tool_calls(RULES)(state, LOOKS) == Stop(halt=halt)


# --- Questions to the user: not what the user has just asked


NO_ECHOES = no_echoes("ask_question", "question")
USER: History = (
    System(text="You help."),
    User(text="What is the total of A-17?"),
    User(text="!", kind=Kind.RETRY_NUDGE),
)


def ask(question: object, name: str = "ask_question") -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=msgspec.json.encode({"question": question}).decode())


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        (ask("What is the total of A-17?"), True),
        (ask("what is the total of a 17"), True),
        (ask("Which order?"), False),
        (ask("What is the total of A-17 in euros?"), False),
        (ask("What is the total of A-17?", "search"), False),
        (ask(7), False),
    ],
)
def test_what_the_user_asked_is_not_asked_back(call: ToolCall, refused: bool) -> None:
    assert bool(NO_ECHOES(State(history=USER), (call,))) == refused


def test_where_nobody_has_asked_anything_anything_may_be_asked() -> None:
    assert not NO_ECHOES(State(history=()), (ask(""),))
    assert not NO_ECHOES(State(history=(User(text="?!"),)), (ask("..."),))


# --- Every guard keeps the laws, with arguments in which it finds something


def ruled(**rules: object) -> ToolSpec:
    return ToolSpec(name="write", description="", parameters=TEXT, **rules)  # type: ignore[arg-type]  # a test's rules


LAWFUL: dict[str, tuple[Guard, list[str]]] = {
    "required_steps": (required_steps(RULES), ["{}"]),
    "prerequisites": (prerequisites(RULES), ['{"what":"a"}', '{"what":"b","text":"t"}']),
    "order": (
        order(replace(RULES, order=(Use(tool="look", at_most=1), Use(tool="fail", after=("look",))))),
        ["{}"],
    ),
    "withheld": (withheld(replace(RULES, withheld=("write",))), ["{}"]),
    "no_placeholders": (no_placeholders(RULES), ['{"what":"<what>"}', '{"what":["<result>"]}', '{"what":"C-204"}']),
    "grounding": (
        grounding(Rules(tools=(ruled(grounded=(Grounded(argument="what"),)),))),
        ['{"what":"a"}', '{"what":-0.0}', '{"what":[1]}'],
    ),
    "no_unseen_values": (no_unseen_values(Rules(tools=(ruled(),), unruled=("write",))), ['{"what":"a"}', '{"what":7}']),
    "calculated": (
        calculated(Rules(tools=(ruled(calculated=(Calculated(argument="what"),)),))),
        ['{"what":"7 + 1"}', '{"what":"7"}', '{"what":"a"}', '{"what":null}'],
    ),
    "repetition": (repetition(replace(RULES, limits=Limits(max_repeats=1))), ['{"what":"a"}']),
    "completion": (completion({"write": lambda _, results: f"{len(results)} found."}), ['{"what":"a"}']),
    "no_echoes": (NO_ECHOES, ['{"question":"What?"}', '{"question":7}']),
}


def test_every_guard_is_held_to_the_laws() -> None:
    assert LAWFUL.keys() == {*GUARDS, "no_echoes"}


@pytest.mark.parametrize(("guard", "arguments"), LAWFUL.values(), ids=LAWFUL)
def test_the_laws_of_guards(guard: Guard, arguments: list[str]) -> None:
    tools = [*(tool.name for tool in RULES.tools), "ask_question"]
    cases = st.sampled_from([*arguments, "{}"])
    assert_guard_laws(guard, tools=tools, arguments=cases, max_examples=settings().max_examples // 3)


# --- Own checks: the calls that they are shown, and what they are asked about


CALLS = (
    ToolCall(id="1", name="look", arguments='{"at":"x"}'),
    ToolCall(id="2", name="look", arguments='{"at":"y"}'),
    ToolCall(id="3", name="fail", arguments="{}"),
)
RESULTS = (
    Tool(call_id="1", name="look", text='{"n": 1}'),
    Tool(call_id="2", name="look", text="not JSON"),
    Tool(call_id="3", name="fail", text="[ToolError] no", status="failed"),
)
FIRST = PastCall(tool="look", arguments={"at": "x"}, result={"n": 1})
SECOND = PastCall(tool="look", arguments={"at": "y"}, result="not JSON")


def cut(call_id: str, text: str) -> Cleared:
    made = next(one for one in CALLS if one.id == call_id)
    return Cleared(call_id=call_id, name=made.name, arguments=made.arguments, text=text)


@pytest.mark.parametrize(
    ("state", "past"),
    [
        (State(history=()), ()),
        (State(history=(Assistant(calls=CALLS), *RESULTS)), (FIRST, SECOND)),
        (State(history=(Assistant(calls=CALLS[1:]), *RESULTS[1:]), cleared=(cut("1", '{"n":1}'),)), (FIRST, SECOND)),
        (
            State(
                history=(Assistant(calls=CALLS), replace(RESULTS[0], text='{"n"…'), *RESULTS[1:]),
                cleared=(cut("1", '{"n":1}'),),
            ),
            (FIRST, SECOND),
        ),
    ],
    ids=["nothing", "in the history", "cut with its call", "cut in its place"],
)
def test_the_calls_that_have_succeeded_are_there_whatever_compaction_has_cut(
    state: State, past: tuple[PastCall, ...]
) -> None:
    assert past_calls(state) == past


def test_a_check_is_given_what_a_calculation_comes_to() -> None:
    pay = ToolSpec(name="pay", description="", parameters=Raw(b"{}"), calculated=(Calculated(argument="amount"),))

    def check(arguments: dict[str, object]) -> str | None:
        return None if arguments["amount"] == 5 else f"{arguments['amount']} is wrong."

    guard = completion({"pay": check}, (pay,))
    calls = tuple(made("pay", f'{{"amount":"{text}"}}') for text in ("2 + 3", "2 + 4", "2 / 0"))
    fine, wrong, unknown = (refused(guard(State(history=()), (call,))) for call in calls)
    assert (fine, wrong) == ([], [Objection(call=calls[1], wrong=Incomplete(problem="6 is wrong."))])
    assert "cannot be worked out" in render(unknown[0])
