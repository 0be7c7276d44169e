"""The Messages API, as a client: requests written, answers read whole and as streams."""

import re
from collections.abc import Iterable, Mapping
from typing import Self, TypeVar, assert_never

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from stages.decoding import decode, decode_or
from stages.effect import Fault, Reply, Usage
from stages.message import Assistant, History, Message, System, Tool, User, is_nudge
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
    appended,
    decoded_reply,
)
from stages.wire.faults import CALLS_LIMIT, AnyAnswer, malformed_fault, reported_fault, too_many_calls_fault
from stages.wire.openai.chat import arguments_text
from stages.wire.sampling import Sampling, head, options
from stages.wire.valid import valid_history

# Anthropic's Messages API: https://platform.claude.com/docs/en/api/messages.
#
# Differences from chat completions: the system prompt is a separate field, a message is a list of blocks, user and
# assistant alternate, the results of a batch begin the one message after it, and no text block is blank. Thinking goes
# back unchanged with its signature (`Assistant.sealed`): the API refuses a call whose thinking is missing or changed.
# https://platform.claude.com/docs/en/build-with-claude/extended-thinking.

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Tool names that the API accepts: no dots."""

_BLANK = "(empty)"
"""The text of an empty message: the API refuses messages without text."""


class _Cache(Struct, frozen=True, kw_only=True):
    """A mark up to which the server caches the prompt."""

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


OPTION_NAMES = {
    "stop": "stop_sequences",
    **dict.fromkeys(("min_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "seed"), ""),
}
"""Options that have another name in the API, or an empty one if they do not exist there."""


def request_head(
    model: str,
    sampling: Sampling,
    names: Mapping[str, str],
    body: Mapping[str, object],
    system: str = "",
    *,
    cache: bool = False,
) -> Raw:
    """The fields of a request before its messages; `system` is `system_text` of the history.

    `cache` marks the system prompt for caching, and lets the server move a mark along the messages.
    """
    mark = {"cache_control": _Cache()} if cache else {}
    text = _TextBlock(text=system, cache_control=_Cache() if cache else UNSET)
    said = {"system": [text]} if system.strip() else {}
    return head({**options(sampling, names), "model": model, **mark, **said}, body, sampling.extra)


def system_text(history: History) -> str:
    """The system prompts of a history, joined."""
    return "\n\n".join(m.text for m in history if isinstance(m, System) and m.text.strip())


def encode_tools(tools: tuple[ToolSpec, ...], *, cache: bool = False) -> Raw:
    """The `tools` of a request, in declared order; made once per workflow. `cache` marks the last one."""
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
    """The messages of a request without the system prompt; adjacent messages of one role are joined.

    A part that begins with a reply gives the end of the result for the whole, unless another reply precedes it.
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


# Thinking of Anthropic's models: its blocks pass through the history and back to the API unchanged.

_decode_blocks = msgspec.json.Decoder(tuple[Raw, ...])


def unsealed_blocks(sealed: str) -> tuple[Raw, ...]:
    """Thinking blocks as the API sent them; empty if they came from another wire."""
    return decode_or(_decode_blocks, sealed, ()) if sealed else ()


def sealed_blocks(blocks: Iterable[Raw | bytes]) -> str:
    """Thinking blocks as a reply carries them through the history; empty text for none."""
    joined = b",".join(map(bytes, blocks))
    return f"[{joined.decode(errors='replace')}]" if joined else ""


# Answers of Anthropic's Messages API: a whole reply and its token counts.


class AnswerBlock(Struct):
    """A block of an answer."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"null")


class _Usage(Struct):
    """Token counts; in a stream some come first and some last."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Answer(AnyAnswer):
    content: list[Raw] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


_answer = msgspec.json.Decoder(_Answer)

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""The API's stop reasons in the words of chat completions, which the stages use; others stay unchanged."""


def decode_reply(body: bytes) -> Reply | Fault:
    """The reply in an answer; a Fault for an invalid body, or for what the API reports."""
    return decoded_reply(_answer, body, "a message", _pieces_of)


def _pieces_of(answer: _Answer, body: bytes) -> StreamRead:
    if answer.content is None:
        return (malformed_fault("the server's answer has no content", body),)
    stream = _counted(AnthropicStream(stop_reason=answer.stop_reason or ""), answer.usage)
    pieces: list[Piece | Fault] = []
    for number, block in enumerate(answer.content):
        stream, begun = _started(stream, number, block, whole=True)
        stream, ended = _stopped(stream)
        pieces += begun + ended
    return (*pieces, _ended(stream))


def _usage_of(usage: _Usage | None) -> Usage | None:
    """Token counts. Cache reads and writes, which the API counts separately, are part of the prompt."""
    if usage is None:
        return None
    cached = usage.cache_read_input_tokens or 0
    prompt = (usage.input_tokens or 0) + (usage.cache_creation_input_tokens or 0) + cached
    return Usage(prompt=prompt, completion=usage.output_tokens or 0, cached=cached)


# Streams of Anthropic's Messages API: https://platform.claude.com/docs/en/build-with-claude/streaming.

_BLOCKS_LIMIT = 256
"""Maximum number of thinking blocks kept for the API."""


class _Delta(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Message(Struct):
    usage: _Usage | None = None


class _Event(AnyAnswer):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: Raw = Raw(b"null")
    delta: _Delta | None = None
    usage: _Usage | None = None


class SignedThinking(Struct, frozen=True, kw_only=True, tag="thinking"):
    """A thinking block in the form that the API takes back."""

    thinking: str
    signature: str


_event = msgspec.json.Decoder(_Event)
block_decoder = msgspec.json.Decoder(AnswerBlock)


class AnthropicStream(Decoder, frozen=True, kw_only=True):
    """The state of reading a streamed message, whose blocks arrive one after the other."""

    calls: int = 0
    input: str = ""
    """The arguments that the open block began with, until deltas replace them."""
    said_in: int = -1
    """The last block with text; -1: none. Text of a new block begins with a blank line."""
    thought_in: int = -1
    thought: tuple[bytes, ...] = ()
    """The open block's thinking, in a few parts."""
    signature: str = ""
    sealed: tuple[bytes, ...] = ()
    """The complete thinking blocks."""
    complete: bool = False
    """Whether the open block is thinking that came complete: redacted, or in a whole answer."""
    stop_reason: str = ""
    usage: _Usage | None = None

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The next event; unknown ones are ignored, as the API asks."""
        event = decode(_event, payload)
        if bytes(event.error) != b"null":
            return self, (reported_fault(event.error),)
        match event.type:
            case "message_start" if event.message is not None:
                return _counted(self, event.message.usage), ()
            case "content_block_start" if bytes(event.content_block) != b"null":
                return _started(self, event.index, event.content_block)
            case "content_block_delta" if event.delta is not None:
                return _grown(self, event.index, event.delta)
            case "content_block_stop":
                return _stopped(self)
            case "message_delta":
                reason = event.delta.stop_reason if event.delta else None
                return replace(_counted(self, event.usage), stop_reason=reason or self.stop_reason), ()
            case "message_stop":
                return self, (_ended(self),)
            case _:
                return self, ()

    def ended(self) -> Ended | None:
        """A stream with a stop reason may omit `message_stop`."""
        return _ended(self) if self.stop_reason else None


_S = TypeVar("_S", bound=AnthropicStream)


def _ended(stream: AnthropicStream) -> Ended:
    reason = stream.stop_reason or "end_turn"
    finish = _FINISH.get(reason, reason)
    return Ended(finish=finish, usage=_usage_of(stream.usage), sealed=sealed_blocks(stream.sealed))


def _counted(stream: _S, usage: _Usage | None) -> _S:
    """The stream with new counts; missing ones stay."""
    if usage is None:
        return stream
    given = {name: count for name, count in msgspec.structs.asdict(usage).items() if count is not None}
    return replace(stream, usage=replace(stream.usage or _Usage(), **given))


def _started(stream: _S, index: int, given: Raw, *, whole: bool = False) -> tuple[_S, StreamRead]:
    block = decode(block_decoder, bytes(given))
    if block.type == "redacted_thinking" or (whole and block.type == "thinking"):
        if len(stream.sealed) == _BLOCKS_LIMIT:
            said = f"the reply has more than {_BLOCKS_LIMIT} thinking blocks"
            return stream, (Fault(kind="too_large", detail=said),)
        stream = replace(stream, sealed=(*stream.sealed, bytes(given)), complete=True)
    if block.type in ("text", "thinking"):
        return _said(stream, index, block.text or "", block.thinking or "")
    if block.type != "tool_use":
        return stream, ()
    if stream.calls == CALLS_LIMIT:
        return stream, (too_many_calls_fault(),)
    after = replace(stream, calls=stream.calls + 1, input=arguments_text(block.input))
    return after, (CallStarted(index=stream.calls, name=block.name or "", id=block.id or ""),)


def _stopped(stream: _S) -> tuple[_S, StreamRead]:
    """The block is closed; for thinking, its signature is now known."""
    if stream.input:
        return replace(stream, input=""), (CallDelta(index=stream.calls - 1, arguments=stream.input),)
    if stream.complete:
        return replace(stream, thought=(), complete=False), _seal(stream.sealed[-1])
    if stream.signature and len(stream.sealed) < _BLOCKS_LIMIT:
        thought = SignedThinking(thinking=b"".join(stream.thought).decode(), signature=stream.signature)
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
