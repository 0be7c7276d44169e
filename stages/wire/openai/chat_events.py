"""Streams of chat completions, written as a server: https://platform.openai.com/docs/api-reference/chat-streaming.

The first chunk has the role, each call begins with a chunk of its index, id, type and name, the last but the usage has
the reason for which the reply ends, and `[DONE]` closes the stream. Chunks are alike but for `delta`, so that what is
around it is written once.
"""

from collections.abc import Iterator
from typing import Self, TypeVar, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.effect import RawCall
from stages.wire.answers import CallIds, Envelope, custom_names, event
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta
from stages.wire.lines import appended
from stages.wire.openai.chat_reply import call_object, finish_of, usage_object
from stages.wire.openai.errors import error_object
from stages.wire.served import RequestError

_encode = msgspec.json.Encoder().encode


class _Call(Struct, frozen=True, kw_only=True):
    """A call that has begun. It is written with its first arguments: until then its name may still grow."""

    index: int
    name: str = ""
    id: str = ""
    written: bool = False
    held: tuple[bytes, ...] = ()
    """The arguments of a custom tool, whose text is known when they are whole."""


class ChatEvents(Struct, frozen=True, kw_only=True):
    """How far a stream has been written. Make it with `completion_events`."""

    head: bytes
    tail: bytes
    envelope: Envelope
    custom: frozenset[str]
    ids: CallIds
    begun: bool = False
    calls: tuple[_Call, ...] = ()
    counted: bool = False
    """Whether the client was told the usage."""

    def begin(self) -> tuple[Self, bytes]:
        """The chunk with the role; nothing where it was sent."""
        if self.begun:
            return self, b""
        return replace(self, begun=True), _chunk(self, {"role": "assistant", "content": ""})

    def ping(self) -> tuple[Self, bytes]:
        """A chunk that says nothing: some clients time out on comments."""
        return self.begin() if not self.begun else (self, _chunk(self, {}))

    def fail(self, error: RequestError) -> bytes:
        """The error in a chunk of its own; nothing follows it."""
        return event({"error": error_object(error)})

    def advance(self, piece: Piece) -> tuple[Self, bytes]:
        """The chunks of the next piece."""
        after, opening = self.begin()
        after, chunks = _written(after, piece)
        return after, opening + chunks


_E = TypeVar("_E", bound=ChatEvents)


def _chunk(events: ChatEvents, delta: dict[str, object]) -> bytes:
    return events.head + _encode(delta) + events.tail


def _written(events: _E, piece: Piece) -> tuple[_E, bytes]:
    match piece:
        case TextDelta(text="") | ReasoningDelta(text=""):
            return events, b""
        case TextDelta(text=text):
            after, calls = _settled(events)
            return after, calls + _chunk(after, {"content": text})
        case ReasoningDelta(text=text):
            after, calls = _settled(events)
            return after, calls + _chunk(after, {"reasoning_content": text})
        case CallStarted():
            return _started(events, piece)
        case CallDelta():
            return _grown(events, piece)
        case Ended():
            after, calls = _settled(events, whole=True)
            return after, b"".join((calls, *_ending(after, piece)))
        case _:
            assert_never(piece)


def _started(events: _E, piece: CallStarted) -> tuple[_E, bytes]:
    at = _place(events, piece.index)
    if at < len(events.calls):
        call = replace(events.calls[at], name=piece.name, id=piece.id)
        return (events if events.calls[at].written else _with(events, at, call)), b""
    after, calls = _settled(events)
    return _with(after, at, _Call(index=piece.index, name=piece.name, id=piece.id)), calls


def _grown(events: _E, piece: CallDelta) -> tuple[_E, bytes]:
    at = _place(events, piece.index)
    after = events if at < len(events.calls) else _with(events, at, _Call(index=piece.index))
    call = after.calls[at]
    if call.name in after.custom:
        return _with(after, at, replace(call, held=appended(call.held, piece.arguments.encode()))), b""
    after, begun = _settled(after)
    more = {"index": at, "function": {"arguments": piece.arguments}}
    return after, begun + _chunk(after, {"tool_calls": [more]})


def _place(events: ChatEvents, index: int) -> int:
    return next((at for at, call in enumerate(events.calls) if call.index == index), len(events.calls))


def _with(events: _E, at: int, call: _Call) -> _E:
    return replace(events, calls=(*events.calls[:at], call, *events.calls[at + 1 :]))


def _settled(events: _E, *, whole: bool = False) -> tuple[_E, bytes]:
    """The calls that have begun, each by its first chunk; custom ones when they are `whole`."""
    chunks: list[bytes] = []
    for at, call in enumerate(events.calls):
        if not call.written and (whole or call.name not in events.custom):
            ids, made = events.ids.of(call.id, at)
            events = _with(replace(events, ids=ids), at, replace(call, written=True))
            said = RawCall(name=call.name, arguments=b"".join(call.held).decode())
            first = {"index": at, **call_object(said, made, events.custom)}
            chunks.append(_chunk(events, {"tool_calls": [first]}))
    return events, b"".join(chunks)


def _ending(events: ChatEvents, ended: Ended) -> Iterator[bytes]:
    finish = _encode(finish_of(ended.finish, called=bool(events.calls)))
    yield events.head + b"{}" + events.tail.replace(b"null", finish, 1)
    if ended.usage is not None and events.envelope.request.usage_in_stream and not events.counted:
        yield event({**_frame(events.envelope), "choices": [], "usage": usage_object(ended.usage)})
    yield b"data: [DONE]\n\n"


def _frame(envelope: Envelope) -> dict[str, object]:
    said = {"id": envelope.id, "object": "chat.completion.chunk"}
    return {**said, "created": envelope.created, "model": envelope.model_name}


def completion_events(envelope: Envelope) -> ChatEvents:
    """A stream that has not begun."""
    head = b"data: " + _encode(_frame(envelope))[:-1] + b',"choices":[{"index":0,"delta":'
    usage = b',"usage":null' if envelope.request.usage_in_stream else b""
    return ChatEvents(
        head=head,
        tail=b',"finish_reason":null}]' + usage + b"}\n\n",
        envelope=envelope,
        custom=custom_names(envelope.request),
        ids=CallIds(envelope=envelope, prefix="call"),
    )


def resumed_events(
    envelope: Envelope, ids: CallIds, *, begun: bool, calls: tuple[str, ...], counted: bool
) -> ChatEvents:
    """A stream of which a server has written the beginning: calls of these ids, the usage or not."""
    written = tuple(_Call(index=number, id=one, written=True) for number, one in enumerate(calls))
    return replace(completion_events(envelope), ids=ids, begun=begun, calls=written, counted=counted)
