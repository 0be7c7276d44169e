"""Calls as markup, a tag a parameter: long texts and code stand in it as they are, without quotes and escapes.

    <invoke name="write">
    <parameter name="text">any text</parameter>
    <parameter name="count" string="false">3</parameter>
    </invoke>

`string="false"` says that the value is JSON. Arguments that hold this very markup, or would not come back as they
are, character for character, are written as one JSON object in place of the parameters. Rescue reads all of it
(families/xml_calls.py), where this decoder is too strict.
"""

import re

import msgspec
from msgspec import Raw

from stages.effect import RawCall
from stages.message import ToolCall
from stages.repair.decoding import decode
from stages.tool import ToolSpec
from stages.wire.prompted.json_calls import described_tool

_INSTRUCTIONS = """\
# Tools

You do this task by calling tools. To call one, reply with this and nothing else, one parameter for each argument:

<invoke name="NAME OF THE TOOL">
<parameter name="NAME OF THE ARGUMENT">its value</parameter>
</invoke>

Write text as it is, without quotes and escapes. Where the schema asks for anything else (a number, true or false, \
a list, an object), write JSON.

Call one tool at a time, then wait: its result comes in the next message. Use values that you were given or \
that a result contains; never make one up.

The tools:
"""

_HEAD = re.compile(r'\s*<invoke name="([^"]*)">')
_KEY = re.compile(r'\s*<parameter name="([\w.-]+)"( string="false"| string="true")?>')
_END = re.compile(r"\s*</invoke>")
_BRACE = re.compile(r"\n\s*\{")
_PLAIN_KEY = re.compile(r"[\w.-]{1,100}")
_MARKUP = re.compile(r"<[^<>\s]{0,20}(?:parameter|invoke)")
_CLOSING = "</parameter>"
_CLOSING_WHOLE = "\n</invoke>"
_members = msgspec.json.Decoder(dict[str, Raw])
_any = msgspec.json.Decoder(Raw)


def instructions(tools: tuple[ToolSpec, ...]) -> str:
    """The text that tells a model of its tools; made once per workflow."""
    return _INSTRUCTIONS + "\n".join(map(described_tool, tools)) if tools else ""


def encode_calls(calls: tuple[ToolCall, ...]) -> str:
    """The calls as text, one after the other."""
    return "\n".join(map(_encode_call, calls))


def _encode_call(call: ToolCall) -> str:
    from html import escape  # noqa: PLC0415 - slow to load, for its table of names, and only this form needs it

    head = f'<invoke name="{escape(call.name)}">\n'
    given = _as_members(call.arguments)
    if given is not None and all(map(_PLAIN_KEY.fullmatch, given)) and not _MARKUP.search(call.arguments):
        parameters = "".join(_parameter(name, bytes(value).decode()) for name, value in given.items())
        text = f"{head}{parameters}</invoke>"
        if decode_calls(text) == (RawCall(name=call.name, arguments=call.arguments),):
            return text
    return f"{head}{call.arguments}{_CLOSING_WHOLE}"


def _parameter(name: str, value: str) -> str:
    if not value.startswith('"'):
        return f'<parameter name="{name}" string="false">{value}{_CLOSING}\n'
    text = msgspec.json.decode(value, type=str)
    body = f"\n{text}\n" if "\n" in text else text
    return f'<parameter name="{name}">{body}{_CLOSING}\n'


def decode_calls(text: str) -> tuple[RawCall, ...]:
    """The calls of a reply that is entirely in the expected form; else none, and rescue may try."""
    from html import unescape  # noqa: PLC0415 - see above

    calls: list[RawCall] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        head = _HEAD.match(text, position)
        read = _read_body(text, head.end()) if head else None
        if head is None or read is None:
            return ()
        arguments, position = read
        calls.append(RawCall(name=unescape(head[1]), arguments=arguments))
    return tuple(calls)


def _read_body(text: str, position: int) -> tuple[str, int] | None:
    """The arguments, and where their call ends."""
    if _BRACE.match(text, position):
        # No JSON holds this: a newline in a string is escaped, and no tag stands outside of one.
        end = text.find(_CLOSING_WHOLE, position)
        arguments = text[position + 1 : end]
        return (arguments, end + len(_CLOSING_WHOLE)) if end > 0 and _as_members(arguments) is not None else None
    given: dict[str, str] = {}
    while key := _KEY.match(text, position):
        end = text.find(_CLOSING, key.end())
        value = _read_value(text[key.end() : end], key[2] or "") if end > 0 else None
        if value is None or key[1] in given:
            return None
        given[key[1]] = value
        position = end + len(_CLOSING)
    end_tag = _END.match(text, position)
    members = ",".join(f"{_quoted(name)}:{value}" for name, value in given.items())
    return ("{" + members + "}", end_tag.end()) if end_tag else None


def _read_value(value: str, typed: str) -> str | None:
    """One value as JSON. Where it has no type, a newline after its tag, and then one before its end, is markup."""
    if "false" in typed:
        return _json(value)
    if not typed and value.startswith("\n"):
        value = value[1:].removesuffix("\n")
    return _quoted(value)


def _json(value: str) -> str | None:
    try:
        return bytes(decode(_any, value)).decode()
    except msgspec.DecodeError:
        return None


def _as_members(arguments: str) -> dict[str, Raw] | None:
    try:
        return decode(_members, arguments)
    except msgspec.DecodeError:
        return None


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
