"""Streams of Anthropic's Messages API: https://platform.claude.com/docs/en/build-with-claude/streaming."""

from typing import Self, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.effect import Fault
from stages.repair.decoding import decode
from stages.wire.anthropic.messages_answer import AnswerBlock, AnthropicUsage, finish_of, usage_of
from stages.wire.anthropic.thinking import sealed_blocks
from stages.wire.deltas import CallDelta, CallStarted, Ended, ReasoningDelta, TextDelta
from stages.wire.faults import CALLS_LIMIT, cut_body, reported_fault, too_many_calls_fault
from stages.wire.lines import Lines, appended, payloads
from stages.wire.openai.chat_answer import arguments_text
from stages.wire.streaming import StreamRead, read_all

_BLOCKS_LIMIT = 256
"""Maximum number of a reply's blocks of thinking that are kept for the API."""


class _Delta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Message(Struct):
    usage: AnthropicUsage | None = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: Raw = Raw(b"null")
    delta: _Delta | None = None
    usage: AnthropicUsage | None = None
    error: Raw = Raw(b"null")


class _Thought(Struct, frozen=True, kw_only=True, tag="thinking"):
    """A block of thinking in the form that goes back to the API."""

    thinking: str
    signature: str


_event = msgspec.json.Decoder(_Event)
_block = msgspec.json.Decoder(AnswerBlock)


class AnthropicStream(Struct, frozen=True, kw_only=True):
    """The state of reading a streamed message. Its blocks come one after the other."""

    lines: Lines = Lines()
    calls: int = 0
    input: str = ""
    """The arguments that the open block began with, until others come."""
    said_in: int = -1
    """The last block with text; -1: none. The text of another block begins with a blank line."""
    thought_in: int = -1
    thought: tuple[bytes, ...] = ()
    """The thinking of the open block, in a few parts."""
    signature: str = ""
    sealed: tuple[bytes, ...] = ()
    """The complete blocks of thinking."""
    hidden: bool = False
    """Whether the open block is thinking that is not shown."""
    stop_reason: str = ""
    usage: AnthropicUsage | None = None

    def advance(self, chunk: bytes) -> tuple[Self, StreamRead]:
        """The decoder after the next bytes, and what they add."""
        lines, ended = self.lines.advance(chunk)
        return read_all(replace(self, lines=lines), payloads(ended))

    def finish(self) -> StreamRead:
        """What the end of the stream adds: a stream with a stop reason may omit `message_stop`."""
        after, pieces = read_all(self, payloads(self.lines.finish()))
        return (*pieces, _ended(after)) if after.stop_reason else pieces

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The next event."""
        try:
            return _read(self, decode(_event, payload))
        except msgspec.DecodeError as error:
            said = f"an event of the stream is none: {error}"
            return self, (Fault(kind="malformed", detail=said, body=cut_body(payload)),)


_S = TypeVar("_S", bound=AnthropicStream)


def _ended(stream: AnthropicStream) -> Ended:
    finish = finish_of(stream.stop_reason or None)
    return Ended(finish=finish, usage=usage_of(stream.usage), sealed=sealed_blocks(stream.sealed))


def _read(stream: _S, event: _Event) -> tuple[_S, StreamRead]:
    """What an event adds; unknown ones are ignored, as the API asks."""
    if bytes(event.error) != b"null":
        return stream, (reported_fault(event.error),)
    match event.type:
        case "message_start" if event.message is not None:
            return _counted(stream, event.message.usage), ()
        case "content_block_start" if bytes(event.content_block) != b"null":
            return _started(stream, event.index, event.content_block)
        case "content_block_delta" if event.delta is not None:
            return _grown(stream, event.index, event.delta)
        case "content_block_stop":
            return _stopped(stream)
        case "message_delta":
            reason = event.delta.stop_reason if event.delta else None
            return replace(_counted(stream, event.usage), stop_reason=reason or stream.stop_reason), ()
        case "message_stop":
            return stream, (_ended(stream),)
        case _:
            return stream, ()


def _counted(stream: _S, usage: AnthropicUsage | None) -> _S:
    """The stream with new counts; missing ones stay."""
    if usage is None:
        return stream
    given = {name: count for name, count in msgspec.structs.asdict(usage).items() if count is not None}
    return replace(stream, usage=replace(stream.usage or AnthropicUsage(), **given))


def _started(stream: _S, index: int, given: Raw) -> tuple[_S, StreamRead]:
    block = decode(_block, bytes(given))
    if block.type == "redacted_thinking":
        if len(stream.sealed) == _BLOCKS_LIMIT:
            return stream, (Fault(kind="too_large", detail=f"the stream has over {_BLOCKS_LIMIT} blocks of thinking"),)
        return replace(stream, sealed=(*stream.sealed, bytes(given)), hidden=True), ()
    if block.type != "tool_use":
        return _said(stream, index, block.text or "", block.thinking or "")
    if stream.calls == CALLS_LIMIT:
        return stream, (too_many_calls_fault(),)
    after = replace(stream, calls=stream.calls + 1, input=arguments_text(block.input))
    return after, (CallStarted(index=stream.calls, name=block.name or "", id=block.id or ""),)


def _stopped(stream: _S) -> tuple[_S, StreamRead]:
    """The block is closed; of thinking, what the API wants back with it is known now."""
    if stream.input:
        return replace(stream, input=""), (CallDelta(index=stream.calls - 1, arguments=stream.input),)
    if stream.hidden:
        return replace(stream, hidden=False), _seal(stream.sealed[-1])
    if stream.signature and len(stream.sealed) < _BLOCKS_LIMIT:
        thought = _Thought(thinking=b"".join(stream.thought).decode(), signature=stream.signature)
        block = msgspec.json.encode(thought)
        return replace(stream, sealed=(*stream.sealed, block), thought=(), signature=""), _seal(block)
    return (replace(stream, thought=()) if stream.thought else stream), ()


def _seal(block: bytes) -> StreamRead:
    return (ReasoningDelta(text="", sealed=sealed_blocks([block])),)


def _grown(stream: _S, index: int, delta: _Delta) -> tuple[_S, StreamRead]:
    if delta.signature:
        return replace(stream, signature=delta.signature), ()
    if not delta.partial_json:
        return _said(stream, index, delta.text or "", delta.thinking or "")
    after = replace(stream, input="") if stream.input else stream
    return after, (CallDelta(index=max(0, stream.calls - 1), arguments=delta.partial_json),)


def _said(stream: _S, index: int, text: str, thinking: str) -> tuple[_S, StreamRead]:
    if thinking:
        gap = "" if stream.thought_in in (-1, index) else "\n\n"
        thought = appended(stream.thought, thinking.encode())
        return replace(stream, thought_in=index, thought=thought), (ReasoningDelta(text=gap + thinking),)
    if text:
        gap = "" if stream.said_in in (-1, index) else "\n\n"
        return replace(stream, said_in=index), (TextDelta(text=gap + text),)
    return stream, ()
