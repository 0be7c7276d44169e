"""Placeholder values: what only stands for a value, and what looks like it but is one."""

import json

import msgspec
import pytest
from msgspec import Raw

from stages.candidates import described_arguments, example_arguments, placeholder_arguments
from stages.message import Tool, ToolCall, User
from stages.state import State
from stages.tool import ToolEffect, ToolSpec

PARAMETERS = {
    "type": "object",
    "properties": {"customer_id": {"type": "string"}, "format": {"type": "string", "enum": ["<result>", "plain"]}},
}
TOOLS = {
    name: ToolSpec(name=name, description="", parameters=Raw(json.dumps(PARAMETERS).encode()))
    for name in ("get_order", "refund")
}


def found(
    value: object, argument: str = "customer_id", said: str = "Refund order A-17."
) -> tuple[tuple[str, str], ...]:
    call = ToolCall(id="call_1", name="refund", arguments=json.dumps({argument: value}))
    return placeholder_arguments(call, TOOLS, State(history=(User(text=said),)))


@pytest.mark.parametrize(
    "text",
    [
        "<customer_id>",
        "{{customer_id}}",
        "${customer_id}",
        "[customer id]",
        "%customer_id%",
        "<value from get_order>",
        "{result}",
        "<your customer id>",
        "customer_id",
        "the customer id",
        "YOUR_CUSTOMER_ID",
        "get_order.customer_id",
        "$get_order(A-17).customer_id",
        "result of get_order",
        "the output from the get_order tool",
        "customer_id returned by calling get_order (result)",
    ],
)
def test_a_text_that_stands_for_a_value(text: str) -> None:
    assert found(text) == (("customer_id", text),)


@pytest.mark.parametrize(
    "text",
    [
        "C-311",
        "",
        "<b>bold</b>",
        "[1, 2]",
        "{}",
        "100%",
        "customer",
        "a note on the customer id of the order",
        "The result of get_order shows that it is late.",
        "No value was found: get_order gave an empty response.",
        "<" * 200,
    ],
)
def test_a_text_that_is_a_value(text: str) -> None:
    assert found(text) == ()


def test_it_is_found_however_deep_it_stands() -> None:
    assert found([{"a": ["C-311", "<customer_id>"]}]) == (("customer_id", "<customer_id>"),)


def test_what_the_user_said_or_the_schema_lists_is_a_value_however_it_looks() -> None:
    assert found("<customer_id>", said="Write <Customer_ID> into it.") == ()
    assert found("<result>", argument="format") == ()
    assert found("<output>", argument="format") == (("format", "<output>"),)


SUMMARY = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "The patient's \u00e9tat, and the medicine."},
        "tone": {"type": "string", "enum": ["as it is said"], "description": "as it is said"},
        "note": {"type": "string", "description": "A note."},
        "any": True,
    },
}


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("To say what you have found.", True),
        ("Answer the user", False),
        ("To say what you have found out: the lamp is 40 euros.", False),
        ("as it is said", False),
    ],
)
def test_a_text_that_stands_in_the_description_of_its_tool(text: str, copied: bool) -> None:
    about = "Answer the user. To say what you have found. It ends the task."
    tool = ToolSpec(name="submit", description=about, parameters=Raw(msgspec.json.encode(SUMMARY)))
    call = ToolCall(id="call_1", name="submit", arguments=json.dumps({"tone": text}))
    assert described_arguments(call, tool, State(history=(User(text="Go."),))) == ((("tone", text),) if copied else ())
    assert described_arguments(call, tool, State(history=(User(text=f"Write: {text}"),))) == ()


@pytest.mark.parametrize(
    ("argument", "text", "copied"),
    [
        ("summary", "The patient's \u00e9tat, and the medicine.", True),
        ("summary", " The patient's \u00e9tat, and the medicine", True),
        ("summary", "The patient's \u00e9tat is good, and the medicine is K.", False),
        ("summary", "the medicine", False),
        ("note", "The patient's \u00e9tat, and the medicine.", False),
        ("note", "A note.", False),
        ("tone", "as it is said", False),
        ("any", "The patient's \u00e9tat, and the medicine.", False),
    ],
)
def test_a_text_that_is_the_description_of_its_argument(argument: str, text: str, copied: bool) -> None:
    tool = ToolSpec(name="submit", description="", parameters=Raw(msgspec.json.encode(SUMMARY)))
    call = ToolCall(id="call_1", name="submit", arguments=json.dumps({argument: text}))
    assert described_arguments(call, tool, State(history=(User(text="Go."),))) == (
        ((argument, text),) if copied else ()
    )
    assert described_arguments(call, tool, State(history=(User(text=f"Write: {text}"),))) == ()


@pytest.mark.parametrize(
    ("about", "text", "copied"),
    [
        ("When it begins. As in 19:30.", "19:30", True),
        ("When it begins, e.g. 19:30.", " 19:30 ", True),
        ('The id, such as "inv-2024/7".', "INV-2024/7", True),
        ("The day (for example 2024-05-17).", "2024-05-17", True),
        ("The day, like 2024-05-17", "2024-05-18", False),
        ("When it begins: 09:00 if nobody says more.", "09:00", False),
        ("The currency, e.g. EUR.", "EUR", False),
        ("How many, e.g. 10", "10", False),
        ("The version, as in 1.2.", "1.2", False),
    ],
)
def test_the_example_of_a_description_is_no_value_of_a_write_before_somebody_has_given_it(
    about: str, text: str, *, copied: bool
) -> None:
    result = Tool(call_id="call_1", name="look", text=json.dumps({"value": text.strip()}))

    def examples(effect: ToolEffect, where: str, *history: User | Tool) -> object:
        described = {"type": "string", "description": about if where == "argument" else ""}
        schema = Raw(json.dumps({"type": "object", "properties": {"at": described}}).encode())
        book = ToolSpec(name="book", description=about if where == "tool" else "", parameters=schema, effect=effect)
        look = ToolSpec(name="look", description=about if where == "another tool" else "", parameters=Raw(b"{}"))
        call = ToolCall(id="call_2", name="book", arguments=json.dumps({"at": text}))
        return example_arguments(call, {"book": book, "look": look}, State(history=history))

    go, found = User(text="Go."), (("at", text),) if copied else ()
    for where in ("argument", "tool", "another tool"):
        assert examples("write", where, go) == examples("terminal", where, go) == found
        assert examples("read", where, go) == ()
        assert examples("write", where, go, result) == ()
        assert examples("write", where, User(text=f"Take {text.strip()}.")) == ()
