"""A tool limited to some values of an argument: to those that its own error messages propose."""

import json
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from forge import Workflow, run_sync
from forge import tool as forge_tool
from forge.errors import ToolResolutionError
from forge.interpreters.scripted import Scripted, call
from stages.message import Assistant, Kind, Status, System, Tool, ToolCall, User
from stages.offer import Offer, in_the_form_of, needed_text, proposed_values, with_enum
from stages.progress import attempt_of
from stages.rules import Rules
from stages.state import Ledger, State, Success
from stages.tool import Calculated, ToolEffect, ToolSpec

WHAT: dict[str, object] = {"what": {"type": "string"}}
FORM = "no such room; write it like '0012'"


def tool(properties: Mapping[str, object], effect: ToolEffect = "read", *calculated: Calculated) -> ToolSpec:
    schema = json.dumps({"type": "object", "properties": properties}).encode()
    return ToolSpec(name="look", description="", parameters=Raw(schema), effect=effect, calculated=calculated)


def failed(
    *made: tuple[str, str], status: Status = "unresolved", kind: Kind = Kind.TOOL_RESULT, progress: int = 0
) -> State:
    """A run in which each of these values was answered with the text behind it, one in a turn."""
    state = State(history=(System(text="Help."),), ledger=Ledger(turn=len(made), progress=progress))
    for turn, (value, text) in enumerate(made, 1):
        call = ToolCall(id=f"{turn}", name="look", arguments=json.dumps({"what": value}))
        answer = Tool(
            call_id=call.id, name="look", text=f"[ToolResolutionError] {text}", status=status, kind=kind, turn=turn
        )
        state = state.say(Assistant(calls=(call,), turn=turn), answer)
        state = state.note(attempts=(*state.ledger.attempts, attempt_of(call, text, status, turn)))
    return state


def proposing(spec: ToolSpec, state: State) -> ToolSpec:
    """The tool as it is offered then."""
    (offered,) = proposed_values(Rules(tools=(spec,)), state, Offer(tools=(spec,))).tools
    return offered


def limited(state: State, spec: ToolSpec | None = None) -> object:
    """The values that the tool is limited to, None for all."""
    schema = msgspec.json.decode(proposing(spec or tool(WHAT), state).parameters)
    return schema["properties"]["what"].get("enum")


@pytest.mark.parametrize(
    ("state", "values"),
    [
        (failed(("7", FORM)), ["0007"]),
        (failed((" 7", FORM)), ["0007"]),
        (failed(("7", FORM), ("8", FORM)), ["0008"]),
        (failed(("7", FORM), ("0007", FORM), ("7", FORM)), None),
        (failed(("a-7", "as in B-2")), ["A-7"]),
        (failed(("7", FORM), status="failed"), ["0007"]),
        (failed(("7", FORM), ("0007", FORM)), None),
        (failed(("0700", FORM)), None),
        (failed(("7", "no such room")), None),
        (failed(("7", FORM), status="final"), None),
        (failed(("7", FORM)).say(User(text="Go on.")), None),
        (failed(("7" * 41, "it is like " + "A" * 41)), None),
        (failed(("7", " " * 2_000 + FORM)), None),
        (State(history=()), None),
    ],
)
def test_after_an_error_with_an_example_the_value_is_offered_in_its_form_and_no_other(
    state: State, values: list[str] | None
) -> None:
    assert limited(state) == values


@pytest.mark.parametrize(
    ("value", "text", "values"),
    [
        ("Petersen", "Nobody is called 'Petersen'. There is a 'Petterson-Lund', or \"O'Hara\".", ["Petterson-Lund"]),
        ("Lund", "Did you mean `Lundh`?", ["Lundh"]),
        ("Lund", '{"error": "not_found", "did_you_mean": ["Lundh", "Lunde"]}', ["Lundh", "Lunde"]),
        ("Lund", "No customer is named 'LUND '.", None),
        ("Lund", "Nothing for 'Lund'. Type 'help' for the syntax.", None),
        ("Lund", "Nobody's name is that of Lundh's.", None),
        ("Lund", "Names are written like 'Lunda Lee'.", None),
        ("A-17", "There is no 'A-17'. The last one is 'A-18'.", None),
        ("a" * 41, f"Did you mean '{'a' * 40}'?", None),
    ],
)
def test_a_look_up_is_offered_what_its_error_quotes_and_is_spelled_like_the_refused_value(
    value: str, text: str, values: list[str] | None
) -> None:
    assert limited(failed((value, text))) == values


THERE = "There is a 'Lundh'."


def test_what_is_proposed_is_offered_for_one_reply() -> None:
    state = failed(("Lund", THERE))
    assert limited(state) == ["Lundh"]
    assert limited(state.say(Assistant(text="Hm.", turn=2))) is None


@pytest.mark.parametrize("status", ["final", "not_run"])
def test_what_a_guard_or_a_tool_that_failed_for_good_quotes_is_not_offered(status: Status) -> None:
    assert limited(failed(("Lund", THERE), status=status)) is None


def test_a_value_that_was_tried_before_is_not_proposed_again_whatever_came_of_it() -> None:
    assert limited(failed(("Lundh", "Not that one."), ("Lund", THERE))) is None
    done = Success(name="look", arguments='{"what":"Lundh"}')
    assert limited(failed(("Lund", THERE)).note(successes=(done,))) is None


def test_nothing_that_is_quoted_is_written() -> None:
    assert limited(failed(("Lund", THERE)), tool(WHAT, "write")) is None
    assert limited(failed(("7", FORM)), tool(WHAT, "write")) == ["0007"]


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
    assert proposing(other, failed(("7", FORM))) == other


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
    ("own", "values", "allowed"),
    [
        ({"type": "string", "description": "Its id.", "minLength": 1}, ("F-1", "F-2"), ["F-1", "F-2"]),
        ({"type": "integer"}, ("17", "-4"), [17, -4]),
        ({"type": "integer"}, ("17", "F-1"), None),
        ({"type": ["string", "null"]}, ("F-1",), None),
        ({"type": "string", "enum": ["F-2"]}, ("F-1",), None),
        (True, ("F-1",), None),
    ],
)
def test_an_argument_is_limited_to_what_is_left(own: object, values: tuple[str, ...], allowed: object) -> None:
    schema = {"type": "object", "properties": {"flat_id": own, "when": {"type": "string"}}, "required": ["flat_id"]}
    spec = ToolSpec(name="get_flat", description="", parameters=Raw(msgspec.json.encode(schema)))
    changed = msgspec.json.decode(with_enum(spec, values, "flat_id").parameters)
    was = own | {"enum": allowed} if isinstance(own, dict) and allowed else own
    assert changed == schema | {"properties": {"flat_id": was, "when": {"type": "string"}}}


# --- Example forms: what a refused value becomes, and which are left as they are


@pytest.mark.parametrize(
    ("example", "value", "written"),
    [
        ("0007", "19", "0019"),
        ("2023-05-01", "2024/3/7", "2024-03-07"),
        ("09:05", "8.30", "08:30"),
        ("EUR", "usd", "USD"),
        ("A-17", "b18", "B-18"),
        ("A-17", "\N{LATIN SMALL LETTER DOTLESS I}18", "\N{LATIN SMALL LETTER DOTLESS I}-18"),
        ("inv_0007", "INV-123", "inv_0123"),
    ],
)
def test_it_has_the_parts_of_the_value_and_the_form_of_the_example(example: str, value: str, written: str) -> None:
    assert in_the_form_of(example, value) == written


@pytest.mark.parametrize(
    ("example", "value"),
    [
        ("0007", "0019"),
        ("0007", "12345"),
        ("0007", "-19"),
        ("0007", "19 %"),
        ("0007", "nineteen"),
        ("1234", "19"),
        ("INV-0007", "7"),
        ("0.05", "1.5"),
        ("that", "Those"),
        ("2023-12-24", "2024-3-7"),
        ("0007", ""),
    ],
    ids=lambda text: text or "nothing",
)
def test_what_could_be_another_value_is_left_alone(example: str, value: str) -> None:
    assert in_the_form_of(example, value) is None


@given(example=st.text(max_size=60), value=st.text(max_size=80))
def test_nothing_but_zeros_and_signs_is_added_and_nothing_is_lost(example: str, value: str) -> None:
    written = in_the_form_of(example, value)
    if written is not None:
        assert _content(written) == _content(value)


def _content(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold().replace("0", "")


@forge_tool(effect="read")
def fetch(count: str) -> str:
    """Fetch records."""
    if len(count) != 4:
        raise ToolResolutionError(f"count must have four digits, such as '0007'; got {count!r}")
    return f"{count} records"


@forge_tool
def finish(text: str) -> str:
    """End."""
    return text


def test_a_model_whose_value_was_refused_is_held_to_its_proper_form() -> None:
    workflow = Workflow("records", tools=[fetch, finish], terminal_tool="finish", required_steps=["fetch"])
    wrong = call("fetch", count="29")
    model = Scripted([wrong, call("fetch", count="0029"), call("finish", text="29")], mode="constrained")
    assert run_sync(workflow, "Fetch 29 records.", backend=model).unwrap().value == "29"
    assert [request.count(b'"0029"') for request in model.requests][:2] == [0, 1]
