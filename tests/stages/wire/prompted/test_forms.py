"""Calls as text, in each form, and histories for strict templates."""

import json

import pytest
from msgspec import Raw

from stages.effect import RawCall
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire import prompted
from stages.wire.openai import chat as openai
from stages.wire.valid import alternating_history

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


U, S = User(text="u"), System(text="s")
CALL = Assistant(calls=(call(),))
RESULT = Tool(call_id="1", name="write", text="7")


@pytest.mark.parametrize(
    ("history", "turns"),
    [
        ((S, U, User(text="v")), ["system s", "user u\n\nv"]),
        ((U, CALL, RESULT, User(text="go")), ["user u", "assistant ", "tool 7\n\ngo"]),
        ((U, Assistant(text="a"), CALL, RESULT), ["user u", "assistant a", "tool 7"]),
        ((U, User(text="")), ["user u"]),
    ],
)
def test_neighbours_are_joined_for_strict_templates(history: tuple[Message, ...], turns: list[str]) -> None:
    wire = openai.encode_history(alternating_history(history))
    assert [f"{message.role} {message.content}" for message in wire] == turns
