"""Answers of Anthropic's Messages API: a whole reply, and the token counts of one."""

import msgspec
from msgspec import Raw, Struct

from stages.effect import Fault, RawCall, Reply, Usage
from stages.repair.decoding import decode
from stages.wire.anthropic.thinking import THINKING, sealed_reply
from stages.wire.faults import CALLS_LIMIT, cut_body, reported_fault, too_many_calls_fault, too_many_objects
from stages.wire.openai.chat_answer import arguments_text


class AnswerBlock(Struct):
    """A block of an answer."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"null")


class AnthropicUsage(Struct):
    """Tokens, as the API has them; in a stream some come first and some last."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(Struct):
    content: list[AnswerBlock] | None = None
    stop_reason: str | None = None
    usage: AnthropicUsage | None = None
    error: Raw = Raw(b"null")


_answer = msgspec.json.Decoder(_Answer)

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""The API's words in those of chat completions, which the stages read; any other stays as it is."""


def decode_reply(body: bytes) -> Reply | Fault:
    """The reply that an answer holds; a Fault says what a body that is none lacks, or what the API reports."""
    if (fault := too_many_objects(body)) is not None:
        return fault
    try:
        return _reply(decode(_answer, body), body)
    except msgspec.DecodeError as error:
        return Fault(kind="malformed", detail=f"the server's answer is no message: {error}", body=cut_body(body))


def _reply(answer: _Answer, body: bytes) -> Reply | Fault:
    if bytes(answer.error) != b"null":
        return reported_fault(answer.error)
    if answer.content is None:
        return Fault(kind="malformed", detail="the server's answer has no content", body=cut_body(body))
    calls = [block for block in answer.content if block.type == "tool_use"]
    if len(calls) > CALLS_LIMIT:
        return too_many_calls_fault()
    return Reply(
        text="\n\n".join(block.text for block in answer.content if block.type == "text" and block.text),
        reasoning="\n\n".join(b.thinking for b in answer.content if b.type == "thinking" and b.thinking),
        sealed=sealed_reply(body) if any(block.type in THINKING for block in answer.content) else "",
        calls=tuple(map(_raw_call, calls)),
        finish=finish_of(answer.stop_reason),
        usage=usage_of(answer.usage),
    )


def finish_of(reason: str | None) -> str:
    """Why the reply ended, in the words of chat completions."""
    return _FINISH.get(reason or "end_turn", reason or "")


def _raw_call(block: AnswerBlock) -> RawCall:
    return RawCall(id=block.id or "", name=block.name or "", arguments=arguments_text(block.input))


def usage_of(usage: AnthropicUsage | None) -> Usage | None:
    """Tokens; what was read from the cache or written to it is part of the prompt, and the API counts it apart."""
    if usage is None:
        return None
    cached = usage.cache_read_input_tokens or 0
    prompt = (usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0) + cached
    return Usage(prompt=prompt, completion=usage.output_tokens or 0, cached=cached)
