"""The OpenAI chat completions protocol: https://platform.openai.com/docs/api-reference/chat.

A request is `request_head`, messages and `tail`, put together by `effect.Request`: canonical JSON, the same bytes for
the same values. `decode_reply` reads a whole answer, or returns the Fault of one that cannot be read.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.repair.decoding import sound_struct
from stages.tool import ToolSpec
from stages.wire.openai.chat_answer import decode_reply
from stages.wire.sampling import Sampling, options

__all__ = [
    "WireMessage",
    "WireSpec",
    "WireTool",
    "decode_reply",
    "encode_history",
    "encode_messages",
    "encode_tools",
    "request_head",
]


class _WireFunction(Struct, frozen=True, kw_only=True):
    name: str
    arguments: str


class _WireCall(Struct, frozen=True, kw_only=True):
    type: str = "function"
    id: str
    function: _WireFunction


class WireMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: str
    content: str
    tool_calls: tuple[_WireCall, ...] = ()
    tool_call_id: str = ""


class WireSpec(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    parameters: Raw
    strict: bool | UnsetType = UNSET


class WireTool(Struct, frozen=True, kw_only=True):
    type: str = "function"
    function: WireSpec


def _encode_message(message: Message) -> WireMessage:
    """One message in the protocol's form, without its kind and turn."""
    match message:
        case Tool():
            return WireMessage(role="tool", content=message.text, tool_call_id=message.call_id)
        case Assistant():
            calls = tuple(map(_wire_call, message.calls))
            return WireMessage(role="assistant", content=message.text, tool_calls=calls)
        case User():
            return WireMessage(role="user", content=message.text)
        case System():
            return WireMessage(role="system", content=message.text)
        case _:
            assert_never(message)


def _wire_call(call: ToolCall) -> _WireCall:
    return _WireCall(id=call.id, function=_WireFunction(name=call.name, arguments=call.arguments))


def encode_history(history: History) -> tuple[WireMessage, ...]:
    """The messages of a request, native tool calls and all."""
    return tuple(map(_encode_message, history))


def encode_tools(tools: tuple[ToolSpec, ...]) -> Raw:
    """The `tools` of a request, in declared order; made once per workflow."""
    specs = (WireSpec(name=t.name, description=t.description, parameters=t.parameters) for t in tools)
    return Raw(msgspec.json.encode([WireTool(function=spec) for spec in specs]))


_encode = msgspec.json.Encoder().encode


def request_head(
    model: str, sampling: Sampling, body: Mapping[str, object] | None = None, names: Mapping[str, str] | None = None
) -> Raw:
    """The fields of a request before its messages, which never change from turn to turn.

    `body` are fields that the backend wants in every request, `names` its own names of options. ValueError: `options`.
    """
    return Raw(_encode({**(body or {}), **options(sampling, names or {}), **sampling.extra, "model": model}))


def encode_messages(messages: Iterable[Struct]) -> tuple[Raw, ...]:
    """The messages of a request, each as JSON, in any wire."""
    return tuple(map(Raw, map(_encoded, messages)))


def _encoded(message: Struct) -> bytes:
    try:
        return _encode(message)
    except UnicodeEncodeError:  # a user's own stage may have added half a character
        return _encode(sound_struct(message))
