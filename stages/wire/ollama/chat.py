"""Ollama's chat, as a client: requests written, answers read whole and as streams."""

from collections.abc import Iterable, Mapping
from typing import Self, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.decoding import decode
from stages.effect import Fault, Reply, Usage
from stages.message import Assistant, History, Message, System, Tool
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
from stages.wire.openai.chat import WireMessage, arguments_text, encode_message
from stages.wire.sampling import Sampling, head, options
from stages.wire.valid import paragraphs, valid_history

# Ollama's own protocol, POST /api/chat: https://docs.ollama.com/api/chat.
#
# Differences from chat completions: arguments are objects, calls have no ids (a result names its tool; forge adds ids),
# sampling options are under `options`, and `format` holds the JSON Schema itself.


class _WireFunction(Struct, frozen=True, kw_only=True, gc=False):
    name: str
    arguments: Raw


class _WireCall(Struct, frozen=True, kw_only=True, gc=False):
    function: _WireFunction


OPTION_NAMES = {"max_tokens": "num_predict"}
"""Options with another name in Ollama."""


def request_head(
    model: str, sampling: Sampling, names: Mapping[str, str], body: Mapping[str, object], num_ctx: int | None
) -> Raw:
    """The fields of a request before its messages; those of `body` and `sampling.extra` are at the top level.

    `num_ctx` is the size of the context in tokens. If unset, the server chooses it: on many machines 4,096, with longer
    prompts truncated silently.
    """
    context = {} if num_ctx is None else {"num_ctx": num_ctx}
    further = {**body, **sampling.extra}
    more = further.pop("options", {})
    asked = {**context, **options(sampling, names), **(more if isinstance(more, dict) else {})}
    return head({"model": model, "options": asked}, {}, {"stream": False, **further})


def encode_history(history: History) -> tuple[WireMessage, ...]:
    """The messages of a request; system prompts become one message, damaged calls are repaired or turned into text."""
    texts = [message.text for message in history if isinstance(message, System)]
    system = (WireMessage(role="system", content=paragraphs(texts)),) if texts else ()
    return system + tuple(_message(message) for message in valid_history(history) if not isinstance(message, System))


def _message(message: Message) -> WireMessage:
    match message:
        case Assistant(text=text, calls=calls):
            functions = (_WireFunction(name=call.name, arguments=Raw(call.arguments.encode())) for call in calls)
            made = tuple(_WireCall(function=function) for function in functions)
            return WireMessage(role="assistant", content=text, tool_calls=made)
        case Tool(name=name, text=text):
            return WireMessage(role="tool", content=text, tool_name=name)
        case _:
            return encode_message(message)


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw(b"null")


class _Call(Struct):
    function: _Function | None = None


class _Message(Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Answer(AnyAnswer):
    """An answer, or a line of a streamed one."""

    message: _Message | None = None
    done_reason: str | None = None
    done: bool = False
    prompt_eval_count: int | None = None
    eval_count: int | None = None


_answer = msgspec.json.Decoder(_Answer)


def decode_reply(body: bytes) -> Reply | Fault:
    """The reply in a whole answer; a Fault for any other body, or for what Ollama reports."""
    return decoded_reply(_answer, body, "one of /api/chat", _pieces_of)


def _pieces_of(answer: _Answer, body: bytes) -> StreamRead:
    if answer.message is None:
        return (malformed_fault("the server's answer has no message", body),)
    return (*_grown(OllamaStream(), answer.message)[1], _ended(answer))


def _usage_of(answer: _Answer) -> Usage | None:
    """Token counts; Ollama omits zero counts, and both if it did not run the model."""
    if answer.prompt_eval_count is None and answer.eval_count is None:
        return None
    return Usage(prompt=answer.prompt_eval_count or 0, completion=answer.eval_count or 0)


# Streams of Ollama's own protocol, one JSON object per line: https://docs.ollama.com/api/streaming.


class OllamaStream(Decoder, frozen=True, kw_only=True):
    """The state of reading a stream of /api/chat. Calls arrive whole, so they are only counted."""

    calls: int = 0

    def payloads(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """The lines that are not blank."""
        return filter(bytes.strip, lines)

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The next line."""
        line = decode(_answer, payload)
        if bytes(line.error) != b"null":
            return self, (reported_fault(line.error),)
        after, pieces = _grown(self, line.message) if line.message is not None else (self, ())
        return after, (*pieces, _ended(line)) if line.done else pieces


_S = TypeVar("_S", bound=OllamaStream)


def _ended(answer: _Answer) -> Ended:
    return Ended(finish=answer.done_reason or "stop", usage=_usage_of(answer))


def _grown(stream: _S, message: _Message) -> tuple[_S, StreamRead]:
    pieces: list[Piece] = []
    if message.thinking:
        pieces.append(ReasoningDelta(text=message.thinking))
    if message.content:
        pieces.append(TextDelta(text=message.content))
    calls = message.tool_calls or ()
    if stream.calls + len(calls) > CALLS_LIMIT:
        return stream, (too_many_calls_fault(),)
    for index, call in enumerate(calls, start=stream.calls):
        function = call.function or _Function()
        pieces.append(CallStarted(index=index, name=function.name or ""))
        if arguments := arguments_text(function.arguments):
            pieces.append(CallDelta(index=index, arguments=arguments))
    return replace(stream, calls=stream.calls + len(calls)) if calls else stream, tuple(pieces)
