"""Calls as text, in each form, and histories with them."""

import json

import pytest
from msgspec import Raw

from stages.effect import RawCall
from stages.message import Assistant, History, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire import prompted
from stages.wire.openai import chat as openai

LOOK = ToolSpec(name="look", description="Look.", parameters=Raw(b'{"type":"object"}'))


def call(name: str = "write", **arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=json.dumps(arguments, separators=(",", ":"), ensure_ascii=False))


XML = {
    "one line": (call(text="a"), '<parameter name="text">a</parameter>\n'),
    "several lines": (call(text="a\n  b\n"), '<parameter name="text">\na\n  b\n\n</parameter>\n'),
    "code": (call(text='if a < b && c: "d"'), '<parameter name="text">if a < b && c: "d"</parameter>\n'),
    "a number and a text that looks like one": (
        call(n=3, s="3"),
        '<parameter name="n" string="false">3</parameter>\n<parameter name="s">3</parameter>\n',
    ),
    "a list": (call(all=[1, "x"]), '<parameter name="all" string="false">[1,"x"]</parameter>\n'),
    "no arguments": (call(), ""),
    "its own markup": (call(text="</parameter>\n</invoke>"), '{"text":"</parameter>\\n</invoke>"}\n'),
}


@pytest.mark.parametrize(("made", "body"), XML.values(), ids=XML.keys())
def test_a_call_as_xml(made: ToolCall, body: str) -> None:
    written = f'<invoke name="write">\n{body}</invoke>'
    assert prompted.XML.encode_calls((made,)) == written
    assert prompted.XML.decode_calls(written) == (RawCall(name="write", arguments=made.arguments),)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('<invoke name="w"><parameter name="a">1</parameter></invoke>', '{"a":"1"}'),
        ('<invoke name="w">\n  <parameter name="a" string="false"> [1] </parameter>\n</invoke>\n', '{"a":[1]}'),
        ('<invoke name="w"><parameter name="a">\r\nb</parameter></invoke>', '{"a":"\\r\\nb"}'),
    ],
)
def test_what_models_write_a_little_otherwise_is_read(text: str, arguments: str) -> None:
    assert prompted.XML.decode_calls(text) == (RawCall(name="w", arguments=arguments),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.",
        '<invoke name="w">',
        '<invoke name="w"><parameter name="a">1</parameter>',
        '<invoke name="w"><parameter name="a">1</invoke>',
        '<invoke name="w"><parameter name="a">1</parameter><parameter name="a">2</parameter></invoke>',
        '<invoke name="w"><parameter name="a" string="false">no JSON</parameter></invoke>',
        '<invoke name="w">\n{"a": 1\n</invoke>',
        '<invoke name="w"></invoke> and so on',
    ],
)
def test_what_is_not_in_the_asked_form_is_left_to_rescue(text: str) -> None:
    assert prompted.XML.decode_calls(text) == ()


@pytest.mark.parametrize("form", [prompted.JSON, prompted.XML, prompted.LIST, prompted.RESPONDING])
def test_the_instructions_hold_every_tool_and_nothing_without_tools(form: prompted.Form) -> None:
    assert form.instructions(()) == ""
    text = form.instructions((LOOK,))
    assert text.endswith('- look: Look.\n  arguments (JSON Schema): {"type":"object"}')
    assert form.decode_calls(text) == ()


def test_a_history_as_xml_takes_turns() -> None:
    history: History = (
        System(text="Do it."),
        User(text="Go."),
        Assistant(text="I write.", calls=(call(text="t"),)),
        Tool(call_id="1", name="write", text="done"),
        User(text="Go on."),
    )
    assert [(m.role, m.content) for m in openai.encode_history(prompted.as_text(history, "# Tools", prompted.XML))] == [
        ("system", "Do it.\n\n# Tools"),
        ("user", "Go."),
        ("assistant", 'I write.\n<invoke name="write">\n<parameter name="text">t</parameter>\n</invoke>'),
        ("user", "Result of write:\ndone\n\nGo on."),
    ]


@pytest.mark.parametrize("form", [prompted.JSON, prompted.XML], ids=lambda form: form.name)
def test_damaged_arguments_are_no_example_to_follow(form: prompted.Form) -> None:
    """A model that reads damaged calls of its own writes more of them."""

    def said(arguments: str) -> str:
        made = ToolCall(id="1", name="write", arguments=arguments)
        return openai.encode_history(prompted.as_text((Assistant(calls=(made,)),), "", form))[0].content

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
