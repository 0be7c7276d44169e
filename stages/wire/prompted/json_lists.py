"""Calls as a JSON list, or an answer in words: `[{"tool": name, "args": {…}}, …]` or `{"answer": text}`.

The form of conversations under a constraint. There a reply must be able to be words, and to hold several calls; asked
for one object a call, small models never began a list, and given an answer as one more tool they never chose it.
"""

import msgspec
from msgspec import Raw, Struct

from stages.effect import RawCall
from stages.message import ToolCall
from stages.repair.decoding import decode
from stages.tool import ToolSpec
from stages.wire.prompted.json_calls import described_tool

_INSTRUCTIONS = """\
# Tools

You can call tools. To call them, reply with a JSON list of calls and nothing else, one for each thing to be done:

[{"tool": "<name of the tool>", "args": {<its arguments>}}]

Their results come in the next message. Use values that you were given or that a result contains; never make one up.

If no tool fits the request, or something that a tool needs is missing, answer in words instead:

{"answer": "<what you say to the user>"}

The tools:
"""


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    args: Raw


class _Answer(Struct, frozen=True, forbid_unknown_fields=True):
    answer: str


class _Wrapped(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply in OpenAI's strict mode, whose schemas cannot have alternatives at the top."""

    call: Raw


def instructions(tools: tuple[ToolSpec, ...]) -> str:
    """The text that tells a model of its tools; made once per workflow."""
    return _INSTRUCTIONS + "\n".join(map(described_tool, tools)) if tools else ""


def encode_calls(calls: tuple[ToolCall, ...]) -> str:
    """The calls as text, in one line."""
    return msgspec.json.encode([_Call(tool=c.name, args=Raw(c.arguments.encode())) for c in calls]).decode()


def encode_answer(text: str) -> str:
    """The words as the reply that they came in."""
    return msgspec.json.encode(_Answer(answer=text)).decode()


def decode_calls(text: str) -> tuple[RawCall, ...]:
    """The calls of a reply that is entirely in this form, or a single one without its list; else none.

    Of any other reply, rescue may find them.
    """
    try:
        found = decode(_call_or_calls, _unwrapped(text))
    except msgspec.DecodeError:
        return ()
    calls = found if isinstance(found, list) else [found]
    return tuple(RawCall(name=call.tool, arguments=bytes(call.args).decode()) for call in calls)


def decode_answer(text: str) -> str | None:
    """The words of a reply that is an answer in this form, None for any other."""
    try:
        return decode(_answer, _unwrapped(text)).answer
    except msgspec.DecodeError:
        return None


_call_or_calls: msgspec.json.Decoder[_Call | list[_Call]] = msgspec.json.Decoder(_Call | list[_Call])
_answer = msgspec.json.Decoder(_Answer)
_wrapped = msgspec.json.Decoder(_Wrapped)


def _unwrapped(text: str) -> bytes | str:
    if not text.lstrip().startswith('{"call"'):
        return text
    try:
        return bytes(decode(_wrapped, text).call)
    except msgspec.DecodeError:
        return text
