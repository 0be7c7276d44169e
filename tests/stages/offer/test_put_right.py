"""A tool limited to some values of an argument, and to values that were put right."""

import json
from collections.abc import Mapping

import msgspec
import pytest
from msgspec import Raw

from stages.message import Assistant, Status, Tool, ToolCall
from stages.offer import needed_text, put_right, with_enum
from stages.state import State
from stages.tool import Calculated, ToolEffect, ToolSpec

WHAT: dict[str, object] = {"what": {"type": "string"}}


def tool(properties: Mapping[str, object], effect: ToolEffect = "read", *calculated: Calculated) -> ToolSpec:
    schema = json.dumps({"type": "object", "properties": properties}).encode()
    return ToolSpec(name="look", description="", parameters=Raw(schema), effect=effect, calculated=calculated)


def refused(*values: str, text: str = "no such room; write it like '0012'", status: Status = "unresolved") -> State:
    state = State(history=())
    for n, value in enumerate(values):
        made = ToolCall(id=f"{n}", name="look", arguments=json.dumps({"what": value}))
        state = state.say(
            Assistant(calls=(made,), turn=1), Tool(call_id=f"{n}", name="look", text=text, status=status, turn=1)
        )
    return state


def values_left(spec: ToolSpec, state: State) -> object:
    properties = msgspec.json.decode(put_right(spec, state).parameters)["properties"]
    return properties["what"].get("enum")


@pytest.mark.parametrize(
    ("state", "values"),
    [
        (refused("7"), ["0007"]),
        (refused(" 7"), ["0007"]),
        (refused("7", "8"), ["0008", "0007"]),
        (refused("7", "0007"), None),
        (refused("0700"), None),
        (refused("7", text="no such room"), None),
        (refused("7", status="final"), None),
        (refused("7" * 81), None),
        (
            refused("Lund", text="Nobody is called 'Lund'. There is a 'Petterson-Lund', or \"O'Hara\"."),
            ["Petterson-Lund", "O'Hara"],
        ),
        (refused("Lund", "Petterson-Lund", text="Nobody's name is 'Lund': 'Petterson-Lund'?"), None),
        (State(history=()), None),
    ],
)
def test_a_value_that_was_refused_with_an_example_is_tried_in_that_form_and_no_other(
    state: State, values: list[str] | None
) -> None:
    assert values_left(tool(WHAT), state) == values


@pytest.mark.parametrize(
    "other",
    [
        tool(WHAT, "terminal"),
        tool({**WHAT, "more": {"type": "string"}}),
        tool({"what": {"type": "string", "enum": ["7"]}}),
        tool(WHAT, "read", Calculated(argument="what")),
        tool({"what": True}),
        tool({}),
    ],
)
def test_nothing_is_guessed_for_a_tool_that_ends_the_run_or_needs_anything_but_one_text(other: ToolSpec) -> None:
    assert put_right(other, refused("7")) == other


@pytest.mark.parametrize(
    ("properties", "required", "argument"),
    [
        (WHAT, [], "what"),
        ({**WHAT, "when": {}}, ["what"], "what"),
        ({**WHAT, "when": {}}, ["when"], None),
        ({"what": {"type": "string", "enum": ["a"]}}, [], None),
        ({"what": True}, [], None),
        ({}, [], None),
    ],
)
def test_the_only_argument_that_is_needed(
    properties: Mapping[str, object], required: list[str], argument: str | None
) -> None:
    schema = json.dumps({"type": "object", "properties": properties, "required": required}).encode()
    assert needed_text(ToolSpec(name="look", description="", parameters=Raw(schema))) == argument


@pytest.mark.parametrize(
    ("own", "values", "limited"),
    [
        ({"type": "string", "description": "Its id."}, ("F-1", "F-2"), ["F-1", "F-2"]),
        ({"type": "integer"}, ("17", "-4"), [17, -4]),
        ({"type": "integer"}, ("17", "F-1"), None),
        ({"type": ["string", "null"]}, ("F-1",), None),
        (True, ("F-1",), None),
        ({"type": "integer", "minimum": 10}, ("4",), None),
    ],
)
def test_an_argument_is_limited_to_what_is_left(own: object, values: tuple[str, ...], limited: object) -> None:
    schema = {"type": "object", "properties": {"flat_id": own, "when": {"type": "string"}}, "required": ["flat_id"]}
    spec = ToolSpec(name="get_flat", description="", parameters=Raw(msgspec.json.encode(schema)))
    changed = msgspec.json.decode(with_enum(spec, values, "flat_id").parameters)
    was = own if limited is None else {"type": own["type"] if isinstance(own, dict) else "", "enum": limited}
    assert changed == schema | {"properties": {"flat_id": was, "when": {"type": "string"}}}
