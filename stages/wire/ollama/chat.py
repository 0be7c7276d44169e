"""Ollama's chat, as a client: requests written, answers read whole and as streams."""

from collections.abc import Iterable, Mapping
from typing import Self, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.effect import Fault, RawCall, Reply, Usage
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.repair.decoding import decode
from stages.wire.deltas import CallDelta, CallStarted, Decoder, Ended, Piece, ReasoningDelta, StreamRead, TextDelta
from stages.wire.faults import CALLS_LIMIT, Answer, decoded_reply, malformed, reported_fault, too_many_calls_fault
from stages.wire.openai.chat import arguments_text
from stages.wire.sampling import Sampling, options
from stages.wire.valid import valid_history

# Ollama's own protocol, POST /api/chat: https://docs.ollama.com/api/chat.
#
# Differences from chat completions: arguments are objects, calls have no ids (a result names its tool; forge adds ids),
# sampling options are under `options`, and `format` holds the JSON Schema itself.


class _WireFunction(Struct, frozen=True, kw_only=True, gc=False):
    name: str
    arguments: Raw


class _WireCall(Struct, frozen=True, kw_only=True, gc=False):
    function: _WireFunction


class _WireMessage(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    role: str
    content: str
    tool_calls: tuple[_WireCall, ...] = ()
    tool_name: str = ""


OPTION_NAMES = {"max_tokens": "num_predict"}
"""Options with another name in Ollama."""


def request_head(
    model: str, sampling: Sampling, num_ctx: int | None = None, body: Mapping[str, object] | None = None
) -> Raw:
    """The fields of a request before its messages; those of `body` and `sampling.extra` are at the top level.

    `num_ctx` is the size of the context in tokens. If unset, the server chooses it: on many machines 4,096, with longer
    prompts truncated silently.
    """
    context = {} if num_ctx is None else {"num_ctx": num_ctx}
    further: dict[str, object] = {**(body or {}), **sampling.extra}
    more = further.pop("options", {})
    asked = {**context, **options(sampling, OPTION_NAMES), **(more if isinstance(more, dict) else {})}
    return Raw(msgspec.json.encode({"model": model, "stream": False, **further, "options": asked}))


def encode_history(history: History) -> tuple[_WireMessage, ...]:
    """The messages of a request; system prompts become one message, damaged calls are repaired or turned into text."""
    texts = [message.text for message in history if isinstance(message, System)]
    system = (_WireMessage(role="system", content="\n\n".join(filter(None, texts))),) if texts else ()
    return system + tuple(_message(message) for message in valid_history(history) if not isinstance(message, System))


def _message(message: Message) -> _WireMessage:
    match message:
        case System(text=text):
            return _WireMessage(role="system", content=text)
        case User(text=text):
            return _WireMessage(role="user", content=text)
        case Assistant(text=text, calls=calls):
            return _WireMessage(role="assistant", content=text, tool_calls=tuple(map(_call, calls)))
        case Tool(name=name, text=text):
            return _WireMessage(role="tool", content=text, tool_name=name)
        case _:
            assert_never(message)


def _call(call: ToolCall) -> _WireCall:
    return _WireCall(function=_WireFunction(name=call.name, arguments=Raw(call.arguments.encode())))


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw(b"null")


class _Call(Struct):
    function: _Function | None = None


class AnswerMessage(Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class OllamaAnswer(Answer):
    """An answer, or a line of a streamed one."""

    message: AnswerMessage | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None


_answer = msgspec.json.Decoder(OllamaAnswer)


def decode_reply(body: bytes) -> Reply | Fault:
    """The reply in a whole answer; a Fault for any other body, or for what Ollama reports."""
    return decoded_reply(_answer, body, "one of /api/chat", _reply_of)


def _reply_of(answer: OllamaAnswer, body: bytes) -> Reply | Fault:
    message = answer.message
    if message is None:
        return malformed("the server's answer has no message", body)
    return Reply(
        text=message.content or "",
        reasoning=message.thinking or "",
        calls=tuple(map(_raw_call, message.tool_calls or ())),
        finish=answer.done_reason or "stop",
        usage=usage_of(answer),
    )


def _raw_call(call: _Call) -> RawCall:
    """The call, with whatever parts are present."""
    function = call.function or _Function()
    return RawCall(name=function.name or "", arguments=arguments_text(function.arguments))


def usage_of(answer: OllamaAnswer) -> Usage | None:
    """Token counts; Ollama omits zero counts, and both if it did not run the model."""
    if answer.prompt_eval_count is None and answer.eval_count is None:
        return None
    return Usage(prompt=answer.prompt_eval_count or 0, completion=answer.eval_count or 0)


# Streams of Ollama's own protocol, one JSON object per line: https://docs.ollama.com/api/streaming.


class _Line(OllamaAnswer):
    done: bool = False


_line = msgspec.json.Decoder(_Line)


class OllamaStream(Decoder, frozen=True, kw_only=True):
    """The state of reading a stream of /api/chat. Calls arrive whole, so they are only counted."""

    calls: int = 0

    def payloads(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """The lines that are not blank."""
        return filter(bytes.strip, lines)

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The next line."""
        line = decode(_line, payload)
        if bytes(line.error) != b"null":
            return self, (reported_fault(line.error),)
        message = line.message or AnswerMessage()
        if self.calls + len(message.tool_calls or ()) > CALLS_LIMIT:
            return self, (too_many_calls_fault(),)
        calls = tuple(map(_raw_call, message.tool_calls or ()))
        pieces: list[Piece] = []
        if message.thinking:
            pieces.append(ReasoningDelta(text=message.thinking))
        if message.content:
            pieces.append(TextDelta(text=message.content))
        for index, call in enumerate(calls, start=self.calls):
            pieces.append(CallStarted(index=index, name=call.name))
            if call.arguments:
                pieces.append(CallDelta(index=index, arguments=call.arguments))
        if line.done:
            pieces.append(Ended(finish=line.done_reason or "stop", usage=usage_of(line)))
        return replace(self, calls=self.calls + len(calls)) if calls else self, tuple(pieces)
