"""Calls as text, in each form, and histories with them."""

import json

import pytest
from msgspec import Raw

from stages.effect import RawCall
from stages.message import Assistant, History, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire import prompted
from stages.wire.openai import chat as openai

LOOK = ToolSpec(name="look", description="Look.", parameters=Raw(b'{"type":"object"}'))


def call(name: str = "write", **arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=json.dumps(arguments, separators=(",", ":"), ensure_ascii=False))


@pytest.mark.parametrize("form", [prompted.JSON, prompted.LIST, prompted.RESPONDING])
def test_the_instructions_hold_every_tool_and_nothing_without_tools(form: prompted.Form) -> None:
    assert form.instructions(()) == ""
    text = form.instructions((LOOK,))
    assert text.endswith('- look: Look.\n  arguments (JSON Schema): {"type":"object"}')
    assert form.decode_calls(text) == ()


def test_damaged_arguments_are_no_example_to_follow() -> None:
    """A model that reads damaged calls of its own writes more of them."""

    def said(arguments: str) -> str:
        made = ToolCall(id="1", name="write", arguments=arguments)
        return openai.encode_history(prompted.as_text((Assistant(calls=(made,)),), ""))[0].content

    assert said('{"text": "a",}') == said('{"text":"a"}')
    assert said("{what}") == "[called write: {what}]"


# --- a JSON list of calls, or an answer in words


@pytest.mark.parametrize(
    ("text", "calls", "answer"),
    [
        ('[{"tool": "look", "args": {}}]', 1, None),
        ('[{"tool": "look", "args": {}}, {"tool": "look", "args": {"at": 1}}]', 2, None),
        ('{"call": [{"tool": "look", "args": {}}]}', 1, None),
        ('{"tool": "look", "args": {}}', 1, None),
        ('{"call": {"tool": "look", "args": {}}}', 1, None),
        ('{"answer": "It is \\"7\\"."}', 0, 'It is "7".'),
        ('{"call": {"answer": "7"}}', 0, "7"),
        ('{"answer": 7}', 0, None),
        ('{"answer": "7", "more": 1}', 0, None),
        ('{"answer": "7', 0, None),
        ('[{"tool": "look", "args": {}}', 0, None),
        ("It is 7.", 0, None),
        ("[]", 0, None),
    ],
)
def test_a_reply_is_a_list_of_calls_or_an_answer(text: str, calls: int, answer: str | None) -> None:
    assert len(prompted.LIST.decode_calls(text)) == calls
    assert prompted.LIST.decode_answer(text) == answer


def test_a_conversation_in_lists_shows_earlier_answers_as_they_were_given() -> None:
    history: History = (
        User(text="Look."),
        Assistant(text="", calls=(call("look"), call("look", at=1))),
        Tool(name="look", text="7", call_id="1"),
        Tool(name="look", text="8", call_id="2"),
        Assistant(text='"7" and 8.'),
        User(text="Sure?"),
    )
    made, results, answered, asked = prompted.as_text(history, "", prompted.LIST)[1:]
    assert made.text == '[{"tool":"look","args":{}},{"tool":"look","args":{"at":1}}]'
    assert results.text == "Result of look:\n7\n\nResult of look:\n8"
    assert (answered.text, asked.text) == ('{"answer":"\\"7\\" and 8."}', "Sure?")


RESPOND = ToolSpec(name="respond", description="Answer.", parameters=Raw(b"{}"))


def test_an_answer_is_a_call_of_respond_where_a_workflow_has_that_tool() -> None:
    form = prompted.RESPONDING
    (said,) = form.decode_calls('{"answer": "It is 7."}')
    assert said == RawCall(name="respond", arguments='{"message":"It is 7."}')
    assert form.encode_calls((ToolCall(id="1", name=said.name, arguments=said.arguments),)) == '{"answer":"It is 7."}'
    assert form.decode_answer('{"answer": "It is 7."}') is None
    assert "- respond" not in form.instructions((RESPOND,))
    assert [one.name for one in form.decode_calls('[{"tool": "look", "args": {}}]')] == ["look"]
