"""Streams of Ollama's own protocol, one JSON object per line: https://docs.ollama.com/api/streaming."""

from typing import Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.effect import Fault
from stages.repair.decoding import decode
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta
from stages.wire.faults import CALLS_LIMIT, cut_body, reported_fault, too_many_calls_fault
from stages.wire.lines import Lines
from stages.wire.ollama.chat import AnswerMessage, OllamaAnswer, raw_call, usage_of
from stages.wire.streaming import StreamRead, read_all


class _Line(OllamaAnswer):
    done: bool = False


_line = msgspec.json.Decoder(_Line)


class OllamaStream(Struct, frozen=True, kw_only=True):
    """The state of reading a stream of /api/chat. Calls come whole, so they are only counted."""

    lines: Lines = Lines()
    calls: int = 0

    def advance(self, chunk: bytes) -> tuple[Self, StreamRead]:
        """The decoder after the next bytes, and what they add."""
        lines, ended = self.lines.advance(chunk)
        return read_all(replace(self, lines=lines), ended)

    def finish(self) -> StreamRead:
        """What the end of the stream adds: the last line may be incomplete until then."""
        return read_all(self, self.lines.finish())[1]

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The next line."""
        if not payload.strip():
            return self, ()
        try:
            return _read(self, decode(_line, payload))
        except msgspec.DecodeError as error:
            return self, (
                Fault(kind="malformed", detail=f"a line of the stream is none: {error}", body=cut_body(payload)),
            )


_S = TypeVar("_S", bound=OllamaStream)


def _read(stream: _S, line: _Line) -> tuple[_S, StreamRead]:
    if bytes(line.error) != b"null":
        return stream, (reported_fault(line.error),)
    message = line.message or AnswerMessage()
    if stream.calls + len(message.tool_calls or ()) > CALLS_LIMIT:
        return stream, (too_many_calls_fault(),)
    calls = tuple(map(raw_call, message.tool_calls or ()))
    pieces: list[Piece | Fault] = []
    if message.thinking:
        pieces.append(ReasoningDelta(text=message.thinking))
    if message.content:
        pieces.append(TextDelta(text=message.content))
    for index, call in enumerate(calls, start=stream.calls):
        pieces.append(CallStarted(index=index, name=call.name))
        if call.arguments:
            pieces.append(CallDelta(index=index, arguments=call.arguments))
    if line.done:
        pieces.append(Ended(finish=line.done_reason or "stop", usage=usage_of(line)))
    return replace(stream, calls=stream.calls + len(calls)) if calls else stream, tuple(pieces)
