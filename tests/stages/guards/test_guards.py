"""Guards by themselves: a state and calls in, a verdict out."""

import re
from collections.abc import Sequence

import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages.guards import guards_of, prerequisites
from stages.message import Assistant, Tool, ToolCall
from stages.objection import NeedsDecision, Objection, Stop, Verdict, render
from stages.rules import Rules
from stages.state import Ledger, State, Success
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
    assert "It needs look, and nobody knows whether that took effect: a person has to find out." in render(objection)


def refused(verdict: Verdict) -> Sequence[Objection]:
    assert not isinstance(verdict, Stop)
    return verdict


TEXT = Raw(b'{"type":"object","properties":{"what":{"type":"string"}}}')
LOOK = ToolSpec(name="look", description="", parameters=TEXT, effect="read")
MADE_UP = '{"what":"<what>"}'
OBJECTING = (
    (ToolSpec(name="write", description="", parameters=TEXT), MADE_UP, "stands for a value"),
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
        ledger=Ledger(in_doubt=(made("write", '{"what":"a"}'),) if unsure else ()),
    )
    (text,) = [
        render(one)
        for guard in guards_of(rules)
        if not isinstance(verdict := guard(state, (made("write", arguments, 2),)), Stop)
        for one in verdict
    ]
    assert said in text
    assert (re.search(r"[Cc]all write( again)?\b", text) is None) == unsure, text
