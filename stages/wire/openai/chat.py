"""Chat completions, as a client: requests written, answers read whole and as streams."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Self, TypeVar, assert_never

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from stages.confidence.measure import ALTERNATIVES, token_probability
from stages.decoding import decode, decode_or, sound_struct
from stages.effect import Fault, Reply, TokenProbability, Usage
from stages.message import Assistant, History, Message, System, Tool, User
from stages.schema import project
from stages.tool import ToolSpec
from stages.wire.deltas import (
    CallDelta,
    CallStarted,
    Decoder,
    Ended,
    Piece,
    ReasoningDelta,
    StreamRead,
    TextDelta,
    decoded_reply,
)
from stages.wire.faults import CALLS_LIMIT, AnyAnswer, malformed_fault, reported_fault, too_many_calls_fault
from stages.wire.sampling import Sampling, head, options

# The OpenAI chat completions protocol: https://platform.openai.com/docs/api-reference/chat.
#
# A request is `request_head`, messages and `tail`, joined by `effect.Request`: canonical JSON, the same bytes for the
# same values. `decode_reply` returns the reply, or the Fault of an answer that cannot be read.


class _WireFunction(Struct, frozen=True, kw_only=True):
    name: str
    arguments: str


class _WireCall(Struct, frozen=True, kw_only=True):
    type: str = "function"
    id: str
    function: _WireFunction


class WireMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of a request; Ollama's calls have another form, and its results a `tool_name` instead of an id."""

    role: str
    content: str
    tool_calls: tuple[Struct, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""


class _WireSpec(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    parameters: Raw
    strict: bool | UnsetType = UNSET


class _WireTool(Struct, frozen=True, kw_only=True):
    type: str = "function"
    function: _WireSpec


def encode_message(message: Message) -> WireMessage:
    """One message in the protocol's form; its kind and turn are dropped."""
    match message:
        case Tool():
            return WireMessage(role="tool", content=message.text, tool_call_id=message.call_id)
        case Assistant():
            calls = [
                _WireCall(id=call.id, function=_WireFunction(name=call.name, arguments=call.arguments))
                for call in message.calls
            ]
            return WireMessage(role="assistant", content=message.text, tool_calls=tuple(calls))
        case User():
            return WireMessage(role="user", content=message.text)
        case System():
            return WireMessage(role="system", content=message.text)
        case _:
            assert_never(message)


def encode_history(history: History) -> tuple[WireMessage, ...]:
    """The messages of a request, including native tool calls."""
    return tuple(map(encode_message, history))


def encode_tools(tools: tuple[ToolSpec, ...]) -> Raw:
    """The `tools` of a request, in declared order; made once per workflow."""
    return Raw(msgspec.json.encode([_WireTool(function=_spec(tool)) for tool in tools]))


def _spec(tool: ToolSpec) -> _WireSpec:
    return _WireSpec(name=tool.name, description=tool.description, parameters=tool.parameters)


_encode = msgspec.json.Encoder().encode


def request_head(model: str, sampling: Sampling, names: Mapping[str, str], body: Mapping[str, object]) -> Raw:
    """The fields of a request before its messages; `body` are fields that the backend needs in every request."""
    return head({**options(sampling, names), "model": model}, body, sampling.extra)


def encode_messages(messages: Iterable[Struct]) -> tuple[Raw, ...]:
    """The messages of a request as JSON, for any wire."""
    return tuple(map(Raw, map(_encoded, messages)))


def _encoded(message: Struct) -> bytes:
    try:
        return _encode(message)
    except UnicodeEncodeError:  # a user's stage may have added a lone surrogate
        return _encode(sound_struct(message))


# Tools for OpenAI's strict mode, which constrains the arguments of native calls to their schemas.


def encode_strict_tools(tools: tuple[ToolSpec, ...]) -> Raw:
    """The `tools` of a request, each strict if its schema allows it; `strict_refusals` lists the others."""
    projected = [(tool, project(tool.parameters, "openai-strict")) for tool in tools]
    specs = (_spec(t) if p.refused else replace(_spec(t), parameters=p.schema, strict=True) for t, p in projected)
    return Raw(msgspec.json.encode([_WireTool(function=spec) for spec in specs]))


def strict_refusals(tools: tuple[ToolSpec, ...]) -> tuple[str, ...]:
    """A sentence for each tool whose schema cannot be strict, with the reason."""
    reasons = ((tool.name, project(tool.parameters, "openai-strict").refused) for tool in tools)
    return tuple(f"{name} cannot be strict: {reason}" for name, reason in reasons if reason)


# Log-probabilities of chat completions, as OpenAI, llama.cpp and vLLM give them.
#
# https://platform.openai.com/docs/api-reference/chat/object, `choices[].logprobs`. llama.cpp's are the model's own,
# before sampling and before the grammar of a schema; vLLM's are after the grammar: -9999 for a token that it forbids.

LOGPROBS_FIELDS: Mapping[str, object] = MappingProxyType({"logprobs": True, "top_logprobs": ALTERNATIVES})
"""The fields of a request for them."""

TOKENS_LIMIT = 4096
"""Maximum tokens of a reply for which probabilities are kept; for a longer reply, none are."""


class _Alternative(Struct):
    token: str
    logprob: float


class _Token(Struct):
    token: str
    logprob: float
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(Struct):
    content: list[_Token] | None = None


_logprobs = msgspec.json.Decoder(_Logprobs | None)


def _token_probabilities(
    given: Raw, before: tuple[TokenProbability, ...] | None = ()
) -> tuple[TokenProbability, ...] | None:
    """The tokens of the field `logprobs`, appended to `before`; None if the field has another form, or too many tokens.

    Such a reply is still valid: only its confidence is unknown.
    """
    if before is None or bytes(given) == b"null":
        return before
    if (found := decode_or(_logprobs, bytes(given), None)) is None:
        return None
    content = (found.content if found else None) or []
    if len(before) + len(content) > TOKENS_LIMIT:
        return None
    kept = ((one, ((other.token, other.logprob) for other in one.top_logprobs or ())) for one in content)
    return (*before, *(token_probability(one.token, one.logprob, others) for one, others in kept))


# Answers of chat completions: a whole reply and its token counts.


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw(b"null")


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Message(Struct):
    """A message, or a chunk's addition to one."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    """`message` is set in a whole answer, `delta` in a chunk."""

    index: int = 0
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None
    logprobs: Raw = Raw(b"null")


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Answer(AnyAnswer):
    """A whole answer, or a chunk of a streamed one."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    object: str | None = None


_string = msgspec.json.Decoder(str)
_answer = msgspec.json.Decoder(_Answer)


def decode_reply(body: bytes) -> Reply | Fault:
    """The first choice of a chat completion; a Fault for any other body."""
    return decoded_reply(_answer, body, "a chat completion", _pieces_of)


def _pieces_of(answer: _Answer, body: bytes) -> StreamRead:
    if not answer.choices:
        return (malformed_fault("the server's answer has no choices", body),)
    choice = answer.choices[0]
    if choice.message is None:
        return (malformed_fault("the server's answer has no message", body),)
    for number, call in enumerate(choice.message.tool_calls or ()):
        call.index = number  # servers number calls only in streams
    stream, pieces = _grown(OpenAIStream(usage=_usage_of(answer.usage)), choice, choice.message)
    return (*pieces, _ended(stream))


def arguments_text(raw: Raw) -> str:
    """The arguments as JSON text. Some servers send an object instead of a string."""
    given = bytes(raw)
    if given.startswith(b'"'):
        return decode(_string, given)
    return "" if given == b"null" else given.decode(errors="replace")


def _usage_of(usage: _Usage | None) -> Usage | None:
    """Token counts; None if the server reports none."""
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details else 0
    return Usage(prompt=usage.prompt_tokens, completion=usage.completion_tokens, cached=cached)


# Streams of chat completions: https://platform.openai.com/docs/api-reference/chat-streaming.

CALL_NAME_LIMIT = 1024
"""Maximum characters of a name that grows: it is reported again each time."""


class _Open(Struct, frozen=True, kw_only=True):
    """A call in progress; `key` is the server's index for it."""

    key: int | None
    id: str
    name: str


class OpenAIStream(Decoder, frozen=True, kw_only=True):
    """The state of reading a streamed chat completion."""

    calls: tuple[_Open, ...] = ()
    finish_reason: str = ""
    usage: Usage | None = None
    tokens: tuple[TokenProbability, ...] | None = ()
    """None: unknown."""

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The next event."""
        if payload == b"[DONE]":
            return self, (_ended(self),)
        chunk = decode(_answer, payload)
        if bytes(chunk.error) != b"null" or chunk.object == "error":
            return self, (reported_fault(Raw(payload) if chunk.object == "error" else chunk.error),)
        after = replace(self, usage=_usage_of(chunk.usage)) if chunk.usage else self
        choice = next((choice for choice in chunk.choices or () if choice.index == 0), None)
        return (after, ()) if choice is None else _grown(after, choice, choice.delta or _Message())

    def ended(self) -> Ended | None:
        """A stream with a finish reason may omit `[DONE]`."""
        return _ended(self) if self.finish_reason else None


_S = TypeVar("_S", bound=OpenAIStream)


def _ended(stream: OpenAIStream) -> Ended:
    return Ended(finish=stream.finish_reason or "stop", usage=stream.usage, tokens=stream.tokens or ())


def _grown(stream: _S, choice: _Choice, delta: _Message) -> tuple[_S, StreamRead]:
    if choice.finish_reason:
        stream = replace(stream, finish_reason=choice.finish_reason)
    if bytes(choice.logprobs) != b"null":
        stream = replace(stream, tokens=_token_probabilities(choice.logprobs, stream.tokens))
    pieces: list[Piece | Fault] = []
    if thought := delta.reasoning_content or delta.reasoning:
        pieces.append(ReasoningDelta(text=thought))
    if delta.content:
        pieces.append(TextDelta(text=delta.content))
    for call in delta.tool_calls or ():
        stream, added = _called(stream, call)
        pieces += added
    return stream, tuple(pieces)


def _called(stream: _S, call: _Call) -> tuple[_S, StreamRead]:
    function = call.function or _Function()
    at = _place(stream.calls, call)
    if at == CALLS_LIMIT:
        return stream, (too_many_calls_fault(),)
    known = stream.calls[at] if at < len(stream.calls) else None
    opened = _opened(known, call, function.name or "")
    if known is not None and len(opened.name) > CALL_NAME_LIMIT:
        return stream, (
            Fault(kind="too_large", detail=f"a tool call's name has more than {CALL_NAME_LIMIT} characters"),
        )
    arguments = arguments_text(function.arguments)
    more = (CallDelta(index=at, arguments=arguments),) if arguments else ()
    if opened == known:
        return stream, more
    calls = (*stream.calls[:at], opened, *stream.calls[at + 1 :])
    return replace(stream, calls=calls), (CallStarted(index=at, name=opened.name, id=opened.id), *more)


def _place(calls: tuple[_Open, ...], call: _Call) -> int:
    """The call's position, by its index, unless its id shows that it is a new call.

    Some servers send no index and mean the last call; others send the index 0 for every call.
    """
    for at in range(len(calls) - 1, -1, -1):
        if call.index is None or calls[at].key == call.index:
            other = bool(call.id and calls[at].id and call.id != calls[at].id)
            return len(calls) if other else at
    return len(calls)


def _opened(known: _Open | None, call: _Call, name: str) -> _Open:
    """The call with the new parts. A name may arrive in parts, or be repeated whole."""
    if known is None:
        return _Open(key=call.index, id=call.id or "", name=name)
    grown = known.name if name in ("", known.name) else known.name + name
    return replace(known, id=known.id or call.id or "", name=grown)
