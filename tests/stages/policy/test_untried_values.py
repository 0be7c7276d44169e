"""Values to try: what was seen, has not been used, and looks like what worked."""

import json
from collections.abc import Mapping

import msgspec
import pytest
from msgspec import Raw

from stages.ledger import Attempt, Ledger, Success
from stages.message import Assistant, Tool, ToolCall
from stages.policy.untried_values import limited_to, only_text_argument, values_to_try
from stages.state import State
from stages.tool import Calculated, ToolEffect, ToolSpec

WHAT: dict[str, object] = {"what": {"type": "string"}}


def tool(properties: Mapping[str, object], effect: ToolEffect = "read", *calculated: Calculated) -> ToolSpec:
    schema = json.dumps({"type": "object", "properties": properties}).encode()
    return ToolSpec(name="look", description="", parameters=Raw(schema), effect=effect, calculated=calculated)


def seen(*texts: str, done: tuple[str, ...] = (), vain: tuple[str, ...] = ()) -> State:
    history = tuple(
        message
        for n, text in enumerate(texts)
        for message in (
            Assistant(calls=(ToolCall(id=f"{n}", name="list", arguments="{}"),)),
            Tool(call_id=f"{n}", name="list", text=text),
        )
    )
    ledger = Ledger(
        successes=tuple(Success(name="look", arguments=json.dumps({"what": value})) for value in done),
        attempts=tuple(Attempt(name="look", arguments=json.dumps({"what": value})) for value in vain),
    )
    return State(history=history, ledger=ledger)


def test_what_was_seen_last_comes_first_and_what_was_tried_does_not_come() -> None:
    state = seen('["A-17","A-18"]', '{"id":"B-2"}', vain=("A-18",))
    assert values_to_try(tool(WHAT), state) == ("B-2", "A-17")


def test_once_something_worked_the_others_look_like_it() -> None:
    state = seen('["A-17","C-311","Ada Lovelace","x"]', done=("A-17",))
    assert values_to_try(tool(WHAT), state) == ("C-311",)


@pytest.mark.parametrize(
    "other",
    [tool(WHAT, "terminal"), tool({**WHAT, "more": {"type": "string"}}), tool({"what": {"type": "integer"}}), tool({})],
)
def test_nothing_is_guessed_for_a_tool_that_ends_the_run_or_takes_anything_but_one_text(other: ToolSpec) -> None:
    assert values_to_try(other, seen('["A-17"]')) == ()


def test_a_tool_is_limited_to_some_values() -> None:
    limited = msgspec.json.decode(limited_to(tool(WHAT), ("A-17", "B-2")).parameters)
    assert limited["properties"] == {"what": {"type": "string", "enum": ["A-17", "B-2"]}}


@pytest.mark.parametrize(
    ("properties", "argument"),
    [(WHAT, "what"), ({"what": {"type": "string", "enum": ["a"]}}, None), ({"what": True}, None), ({}, None)],
)
def test_the_only_argument(properties: Mapping[str, object], argument: str | None) -> None:
    assert only_text_argument(tool(properties)) == argument
    assert only_text_argument(tool(properties, "read", Calculated(argument="what"))) is None
