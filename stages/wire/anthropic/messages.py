"""Anthropic's Messages API: https://platform.claude.com/docs/en/api/messages.

It differs from chat completions: the system prompt is a field of its own, a message is a list of blocks, user and
assistant take turns, the results of a batch stand at the beginning of the one message after it, and no text block
is blank. Thinking goes back with its signature, as it came (`Assistant.sealed`): the API refuses a call whose
thinking is missing or was touched. https://platform.claude.com/docs/en/build-with-claude/extended-thinking.
"""

import re
from collections.abc import Iterable, Mapping
from typing import assert_never

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from stages.effect import Fault, RawCall, Reply, Usage
from stages.message import Assistant, History, Message, System, Tool, User, is_nudge
from stages.repair.decoding import decode
from stages.tool import ToolSpec
from stages.wire.faults import CALLS_LIMIT, cut_body, reported_fault, too_many_calls_fault, too_many_objects
from stages.wire.openai.chat import arguments_text, encode_messages
from stages.wire.sampling import Sampling, options
from stages.wire.valid import valid_history

__all__ = ["decode_reply", "encode_history", "encode_messages", "encode_tools", "request_head", "system_text"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Names of tools that the API takes: no dots."""

_BLANK = "(empty)"
"""The text of a message that says nothing: the API refuses one without."""


class _Cache(Struct, frozen=True, kw_only=True):
    """A mark up to which the server keeps the prompt."""

    type: str = "ephemeral"


class _TextBlock(Struct, frozen=True, kw_only=True, gc=False, tag="text"):
    text: str
    cache_control: _Cache | UnsetType = UNSET


class _ToolUse(Struct, frozen=True, kw_only=True, gc=False, tag="tool_use"):
    id: str
    name: str
    input: Raw


class _ToolResult(Struct, frozen=True, kw_only=True, gc=False, tag="tool_result"):
    tool_use_id: str
    content: str | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET


_Block = _TextBlock | _ToolUse | _ToolResult | Raw


class _WireMessage(Struct, frozen=True, kw_only=True, gc=False):
    role: str
    content: tuple[_Block, ...]


class _WireTool(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    input_schema: Raw
    cache_control: _Cache | UnsetType = UNSET


_NAMES = {
    "stop": "stop_sequences",
    **dict.fromkeys(("min_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "seed"), ""),
}
"""The options that the API has another name for, or has not."""


def request_head(
    model: str, sampling: Sampling, system: str = "", *, cache: bool = False, body: Mapping[str, object] | None = None
) -> Raw:
    """The fields of a request before its messages; `system` is `system_text` of the history.

    `cache` marks the system prompt, and has the server move a mark of its own along the messages. `body` are
    further fields. ValueError for options that the API does not have: it would refuse every request.
    """
    mark = {"cache_control": _Cache()} if cache else {}
    text = _TextBlock(text=system, cache_control=_Cache() if cache else UNSET)
    said = {"system": [text]} if system.strip() else {}
    fields = {**(body or {}), **options(sampling, _NAMES), **sampling.extra, "model": model, **mark, **said}
    return Raw(msgspec.json.encode(fields))


def system_text(history: History) -> str:
    """The system prompts of a history, as one."""
    return "\n\n".join(m.text for m in history if isinstance(m, System) and m.text.strip())


def encode_tools(tools: tuple[ToolSpec, ...], *, cache: bool = False) -> Raw:
    """The `tools` of a request, in declared order; made once per workflow. `cache` marks the last."""
    last = len(tools) - 1
    specs = (
        _WireTool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.parameters,
            cache_control=_Cache() if cache and number == last else UNSET,
        )
        for number, tool in enumerate(tools)
    )
    return Raw(msgspec.json.encode(list(specs)))


def encode_history(history: History) -> tuple[_WireMessage, ...]:
    """The messages of a request, without the system prompt; neighbours of one role are one message.

    A part that begins with a reply gives the end of what the whole gives, unless a reply stands before it.
    """
    turns: list[tuple[str, list[_Block]]] = []
    for message in valid_history(history, _NAME):
        if isinstance(message, System):
            continue
        role = "assistant" if isinstance(message, Assistant) else "user"
        if not turns or turns[-1][0] != role:
            turns.append((role, []))
        turns[-1][1].extend(_blocks(message))
    return tuple(_WireMessage(role=role, content=tuple(blocks) or (_TextBlock(text=_BLANK),)) for role, blocks in turns)


def _blocks(message: Message) -> tuple[_Block, ...]:
    match message:
        case System(text=text) | User(text=text):
            return _text(text)
        case Assistant(text=text, calls=calls, sealed=sealed):
            uses = (_ToolUse(id=c.id, name=c.name, input=Raw(c.arguments.encode())) for c in calls)
            return (*unsealed_blocks(sealed), *_text(text), *uses)
        case Tool(call_id=call_id, text=text, status=status):
            content = text if text.strip() else UNSET
            wrong = True if is_nudge(message) or status != "succeeded" else UNSET
            return (_ToolResult(tool_use_id=call_id, content=content, is_error=wrong),)
        case _:
            assert_never(message)


def _text(text: str) -> tuple[_TextBlock, ...]:
    return (_TextBlock(text=text),) if text.strip() else ()


_thinking = msgspec.json.Decoder(tuple[Raw, ...])


def unsealed_blocks(sealed: str) -> tuple[Raw, ...]:
    """Thinking as the API gave it; none where it came over another wire."""
    try:
        return decode(_thinking, sealed) if sealed else ()
    except msgspec.DecodeError:
        return ()


def sealed_blocks(blocks: Iterable[Raw | bytes]) -> str:
    """Blocks of thinking as a reply carries them through a history; the empty text for none."""
    joined = b",".join(map(bytes, blocks))
    return f"[{joined.decode(errors='replace')}]" if joined else ""


class _Kind(Struct):
    type: str = ""


class _Whole(Struct):
    """An answer's blocks as they stand."""

    content: list[Raw]


_kind = msgspec.json.Decoder(_Kind)
_whole = msgspec.json.Decoder(_Whole)


def _sealed(body: bytes) -> str:
    blocks = decode(_whole, body).content
    return sealed_blocks(block for block in blocks if decode(_kind, bytes(block)).type in _THINKING)


_THINKING = frozenset({"thinking", "redacted_thinking"})


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
        sealed=_sealed(body) if any(block.type in _THINKING for block in answer.content) else "",
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
