"""Placeholder values: what only stands for a value, and what looks like it but is one."""

import json

import pytest
from msgspec import Raw

from stages.message import ToolCall, User
from stages.placeholders import placeholder_arguments
from stages.state import State
from stages.tool import ToolSpec

PARAMETERS = {
    "type": "object",
    "properties": {"customer_id": {"type": "string"}, "format": {"type": "string", "enum": ["<result>", "plain"]}},
}
WRITTEN = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
TOOLS = {
    name: ToolSpec(name=name, description="", parameters=Raw(json.dumps(parameters).encode()))
    for name, parameters in (("get_order", PARAMETERS), ("refund", PARAMETERS), ("write_file", WRITTEN))
}


def found(
    value: object, argument: str = "customer_id", said: str = "Refund order A-17.", tool: str = "refund"
) -> tuple[tuple[str, str], ...]:
    call = ToolCall(id="call_1", name=tool, arguments=json.dumps({argument: value}))
    return placeholder_arguments(call, TOOLS, State(history=(User(text=said),)))


@pytest.mark.parametrize(
    "text",
    [
        "<customer_id>",
        "{{customer_id}}",
        "{{ get_order.customer_id }}",
        "${customer_id}",
        "[customer id]",
        "%customer_id%",
        "<value from get_order>",
        "{result}",
        "{result}\n",
        "<your customer id>",
        "customer_id",
        "the customer id",
        "YOUR_CUSTOMER_ID",
        "get_order.customer_id",
        "get_order()",
        "$get_order.result[0]",
        "$get_order(A-17).customer_id",
        "customer_id_from_get_order",
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
        "{{name}}",
        "{\n  result\n}",
        "<x>",
        "100%",
        "customer",
        "from Lisbon",
        "my order",
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


@pytest.mark.parametrize(
    "content",
    ["{{name}}", "<div>", "<output>", "{{result}}", "{{ content }}", "get_order('A-17')", "paint()", "[code]"],
)
def test_a_document_may_be_a_template_or_a_call(content: str) -> None:
    assert found(content, "content", tool="write_file") == ()
    assert found("{{result}}", "path", tool="write_file"), "another argument of the tool may not"


@pytest.mark.parametrize("content", ["<content from get_order>", "{{get_order.result}}", "{{ get_order.city }}"])
def test_a_document_that_names_the_result_of_a_tool_stands_for_it(content: str) -> None:
    assert found(content, "content", tool="write_file") == (("content", content),)
