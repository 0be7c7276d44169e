"""Values to try: what was seen, has not been used, and looks like what worked."""

import json
from collections.abc import Mapping

import msgspec
import pytest
from msgspec import Raw

from stages.candidates import only_text_argument, values_to_try, with_enum
from stages.message import Assistant, Kind, Status, Tool, ToolCall, User
from stages.state import Attempt, Ledger, State, Success
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


@pytest.mark.parametrize(
    ("status", "kind", "left"),
    [
        ("final", Kind.TOOL_RESULT, ()),
        ("unresolved", Kind.TOOL_RESULT, ("B-2",)),
        ("final", Kind.RETRY_NUDGE, ("B-2",)),
    ],
    ids=["it failed for good", "it found nothing", "forge refused the call"],
)
def test_what_failed_for_good_is_not_tried_with_other_values(status: Status, kind: Kind, left: tuple[str, ...]) -> None:
    state = seen('["B-2"]').say(Tool(call_id="9", name="look", text="No.", status=status, kind=kind))
    assert values_to_try(tool(WHAT), state) == left


def test_a_value_that_was_refused_with_an_example_is_tried_in_that_form_and_no_other() -> None:
    refused = ToolCall(id="9", name="look", arguments='{"what":"7"}')
    answer = Tool(call_id="9", name="look", text="no room 7; write it like '0012'", status="unresolved", turn=1)
    state = seen('["B-2"]').say(Assistant(calls=(refused,), turn=1), answer)
    assert values_to_try(tool(WHAT), state) == ("0007",)


def test_an_example_in_an_answer_is_no_value_to_try() -> None:
    state = seen("A room is written like 'R-07', such as R-08; there are 'R-21' and R-22.")
    assert values_to_try(tool(WHAT), state) == ("R-21", "R-22")


def test_once_something_worked_the_others_look_like_it() -> None:
    state = seen('{"ids":["A-17","C-311"],"by":"Ada Lovelace","code":"x"}', done=("A-17",))
    assert values_to_try(tool(WHAT), state) == ("C-311",)


@pytest.mark.parametrize(
    ("result", "left"),
    [
        ('{"names":["Fig","Fig Jam","Fig & Oats"],"shelf":"Top shelf"}', {"Fig Jam", "Fig & Oats"}),
        ('["Fig","Fig Jam","Fig & Oats"]', {"Fig Jam", "Fig & Oats"}),
        ('[{"name":"Fig","shelf":"Top shelf"},{"name":"Fig Jam","shelf":"Low shelf"}]', {"Fig Jam"}),
        ('{"names":["Oats","Fig Jam"]}', {"Oats"}),
        ('{"names":["Fig"],"shelf":"Top shelf"}', set()),
    ],
    ids=["one list", "a bare list", "a list of records", "another result", "nothing beside it"],
)
def test_names_in_a_list_with_one_that_worked_are_left_whatever_they_look_like(result: str, left: set[str]) -> None:
    assert {*values_to_try(tool(WHAT), seen(result, done=("Fig",), vain=("Plum",)))} == left


def test_no_more_values_are_proposed_than_a_model_can_choose_from() -> None:
    found = values_to_try(tool(WHAT), seen(json.dumps([f"A-{n}" for n in range(99)])))
    assert len(found) == len({*found}) == 32


def test_a_long_run_is_not_read_to_its_beginning_but_what_the_user_said_is() -> None:
    later = seen('["B-2"]', *["Nothing."] * 300).history
    assert values_to_try(tool(WHAT), State(history=(User(text="Look at A-17."), *later))) == ("A-17",)


@pytest.mark.parametrize(
    "other",
    [tool(WHAT, "terminal"), tool({**WHAT, "more": {"type": "string"}}), tool({})],
)
def test_nothing_is_guessed_for_a_tool_that_ends_the_run_or_takes_anything_but_one_text(other: ToolSpec) -> None:
    assert values_to_try(other, seen('["A-17"]')) == ()


@pytest.mark.parametrize(
    ("properties", "argument"),
    [(WHAT, "what"), ({"what": {"type": "string", "enum": ["a"]}}, None), ({"what": True}, None), ({}, None)],
)
def test_the_only_argument(properties: Mapping[str, object], argument: str | None) -> None:
    assert only_text_argument(tool(properties)) == argument
    assert only_text_argument(tool(properties, "read", Calculated(argument="what"))) is None


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


def test_the_only_required_text_is_limited_and_optional_arguments_are_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {"what": {"type": "string", "minLength": 1}, "when": {"type": "string"}},
        "required": ["what"],
    }
    spec = ToolSpec(name="look", description="", parameters=Raw(msgspec.json.encode(schema)))
    changed = msgspec.json.decode(with_enum(spec, ("A-17", "B-2")).parameters)
    assert changed == schema | {"properties": {"what": {"type": "string", "enum": ["A-17", "B-2"]}}}
