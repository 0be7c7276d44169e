"""Streams of chat completions: https://platform.openai.com/docs/api-reference/chat-streaming."""

from typing import Self, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.confidence.token_probability import TokenProbability
from stages.effect import Fault, Usage
from stages.repair.decoding import decode
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta
from stages.wire.faults import CALLS_LIMIT, cut_body, reported_fault, too_many_calls_fault
from stages.wire.lines import Lines, payloads
from stages.wire.openai.chat_answer import OpenAIUsage, arguments_text, usage_of
from stages.wire.openai.chat_logprobs import tokens_of
from stages.wire.streaming import StreamRead, read_all

CALL_NAME_LIMIT = 1024
"""Maximum characters of a name: it is reported again whenever it grows."""


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw(b"null")


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: Raw = Raw(b"null")


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: OpenAIUsage | None = None
    error: Raw = Raw(b"null")
    object: str | None = None


_chunk = msgspec.json.Decoder(_Chunk)


class _Open(Struct, frozen=True, kw_only=True):
    """A call in progress; `key` is the server's index of it."""

    key: int | None
    id: str
    name: str


class OpenAIStream(Struct, frozen=True, kw_only=True):
    """The state of reading a streamed chat completion."""

    lines: Lines = Lines()
    calls: tuple[_Open, ...] = ()
    finish_reason: str = ""
    usage: Usage | None = None
    tokens: tuple[TokenProbability, ...] | None = ()
    """None: nothing is known of them."""

    def advance(self, chunk: bytes) -> tuple[Self, StreamRead]:
        """The decoder after the next bytes, and what they add."""
        lines, ended = self.lines.advance(chunk)
        return read_all(replace(self, lines=lines), payloads(ended))

    def finish(self) -> StreamRead:
        """What the end of the stream adds: a stream with a finish reason may omit `[DONE]`."""
        after, pieces = read_all(self, payloads(self.lines.finish()))
        return (*pieces, _ended(after)) if after.finish_reason else pieces

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The next event."""
        if payload == b"[DONE]":
            return self, (_ended(self),)
        try:
            return _read(self, decode(_chunk, payload), payload)
        except msgspec.DecodeError as error:
            return self, (
                Fault(kind="malformed", detail=f"a chunk of the stream is none: {error}", body=cut_body(payload)),
            )


_S = TypeVar("_S", bound=OpenAIStream)


def _ended(stream: OpenAIStream) -> Ended:
    return Ended(finish=stream.finish_reason or "stop", usage=stream.usage, tokens=stream.tokens or ())


def _read(stream: _S, chunk: _Chunk, payload: bytes) -> tuple[_S, StreamRead]:
    if bytes(chunk.error) != b"null" or chunk.object == "error":
        return stream, (reported_fault(Raw(payload) if chunk.object == "error" else chunk.error),)
    after = replace(stream, usage=usage_of(chunk.usage)) if chunk.usage else stream
    choice = next((choice for choice in chunk.choices or () if choice.index == 0), None)
    if choice is None:
        return after, ()
    if choice.finish_reason:
        after = replace(after, finish_reason=choice.finish_reason)
    if bytes(choice.logprobs) != b"null":
        after = replace(after, tokens=tokens_of(choice.logprobs, after.tokens))
    return _grown(after, choice.delta or _Delta())


def _grown(stream: _S, delta: _Delta) -> tuple[_S, StreamRead]:
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
    if len(opened.name) > CALL_NAME_LIMIT:
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
    """The call's position: that of its index, unless its id says that it is another.

    Some servers give no index and mean the last call; others give every call the index 0.
    """
    for at in range(len(calls) - 1, -1, -1):
        if call.index is None or calls[at].key == call.index:
            other = bool(call.id and calls[at].id and call.id != calls[at].id)
            return len(calls) if other else at
    return len(calls)


def _opened(known: _Open | None, call: _Call, name: str) -> _Open:
    """The call with what is new. A name may come in parts, or be repeated whole."""
    if known is None:
        return _Open(key=call.index, id=call.id or "", name=name)
    grown = known.name if name in ("", known.name) else known.name + name
    return replace(known, id=known.id or call.id or "", name=grown)
