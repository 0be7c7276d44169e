"""Calls as JSON: one object per line, `{"tool": name, "args": {…}}`."""

import msgspec
from msgspec import Raw, Struct

from stages.effect import RawCall
from stages.message import ToolCall
from stages.repair.decoding import decode
from stages.tool import ToolSpec

_INSTRUCTIONS = """\
# Tools

You do this task by calling tools. To call one, reply with one JSON object and nothing else:

{"tool": "<name of the tool>", "args": {<its arguments>}}

Call one tool at a time, then wait: its result comes in the next message. Use values that you were given or \
that a result contains; never make one up.

The tools:
"""


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    args: Raw


class _Wrapped(Struct, frozen=True, forbid_unknown_fields=True):
    """A call in OpenAI's strict mode, whose schemas cannot have alternatives at the top."""

    call: _Call


def instructions(tools: tuple[ToolSpec, ...]) -> str:
    """The text that tells a model of its tools; made once per workflow."""
    return _INSTRUCTIONS + "\n".join(map(described_tool, tools)) if tools else ""


def described_tool(tool: ToolSpec) -> str:
    """One tool, with the JSON Schema of its arguments."""
    return f"- {tool.name}: {tool.description}\n  arguments (JSON Schema): {bytes(tool.parameters).decode()}"


def encode_calls(calls: tuple[ToolCall, ...]) -> str:
    """The calls as text, one a line."""
    lines = (msgspec.json.encode(_Call(tool=c.name, args=Raw(c.arguments.encode()))).decode() for c in calls)
    return "\n".join(lines)


def decode_calls(text: str) -> tuple[RawCall, ...]:
    """The calls of a reply that is entirely in the expected form; else none, and rescue may try."""
    lines = text.strip().split("\n")
    calls = []
    for chunk in (text,) if _is_call(text) is not None else lines:
        call = _is_call(chunk)
        if call is None:
            return ()
        calls.append(RawCall(name=call.tool, arguments=bytes(call.args).decode()))
    return tuple(calls)


_call = msgspec.json.Decoder(_Call)
_wrapped = msgspec.json.Decoder(_Wrapped)


def _is_call(text: str) -> _Call | None:
    try:
        return decode(_call, text)
    except msgspec.DecodeError:
        return _in_wrapping(text) if text.lstrip().startswith('{"call"') else None


def _in_wrapping(text: str) -> _Call | None:
    try:
        return decode(_wrapped, text).call
    except msgspec.DecodeError:
        return None
