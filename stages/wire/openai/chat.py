"""The OpenAI chat completions protocol: https://platform.openai.com/docs/api-reference/chat.

A request is `request_head`, messages and `tail`, put together by `effect.Request`: canonical JSON, the same bytes for
the same values. `decode_reply` reads a whole answer, or returns the Fault of one that cannot be read.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from stages.effect import Fault, RawCall, Reply, Usage
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.repair.decoding import decode, sound_struct
from stages.tool import ToolSpec
from stages.wire.faults import CALLS_LIMIT, cut_body, reported_fault, too_many_calls_fault, too_many_objects
from stages.wire.sampling import Sampling, options

__all__ = [
    "Sampling",
    "WireMessage",
    "WireSpec",
    "WireTool",
    "_encode_message",
    "arguments_text",
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


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw(b"null")


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None


class OpenAIUsage(Struct):
    """Token counts in the protocol's form."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Completion(Struct):
    choices: list[_Choice] = []
    usage: OpenAIUsage | None = None
    error: Raw = Raw(b"null")


_string = msgspec.json.Decoder(str)
_completion = msgspec.json.Decoder(_Completion)


def decode_reply(body: bytes) -> Reply | Fault:
    """The first choice of a chat completion; a Fault for any other body."""
    if (fault := too_many_objects(body)) is not None:
        return fault
    try:
        return _reply(decode(_completion, body), body)
    except msgspec.DecodeError as error:
        return Fault(
            kind="malformed", detail=f"the server's answer is no chat completion: {error}", body=cut_body(body)
        )


def _reply(completion: _Completion, body: bytes) -> Reply | Fault:
    if bytes(completion.error) != b"null":
        return reported_fault(completion.error)
    if not completion.choices:
        return Fault(kind="malformed", detail="the server's answer has no choices", body=cut_body(body))
    choice = completion.choices[0]
    message = choice.message
    if len(message.tool_calls or ()) > CALLS_LIMIT:
        return too_many_calls_fault()
    return Reply(
        text=message.content or "",
        reasoning=message.reasoning_content or message.reasoning or "",
        calls=tuple(map(_raw_call, message.tool_calls or ())),
        finish=choice.finish_reason or "stop",
        usage=usage_of(completion.usage),
    )


def _raw_call(call: _Call) -> RawCall:
    function = call.function or _Function()
    return RawCall(id=call.id or "", name=function.name or "", arguments=arguments_text(function.arguments))


def arguments_text(raw: Raw) -> str:
    """JSON text. Some servers send an object instead of a string: its text is used as well."""
    given = bytes(raw)
    if given.startswith(b'"'):
        return decode(_string, given)
    return "" if given == b"null" else given.decode(errors="replace")


def usage_of(usage: OpenAIUsage | None) -> Usage | None:
    """Token counts; None if the server gives none."""
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return Usage(prompt=usage.prompt_tokens, completion=usage.completion_tokens, cached=cached)
