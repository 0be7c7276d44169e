"""The Messages API, as a server: requests read, replies written whole and as streams."""

from collections.abc import Container, Iterator, Sequence
from typing import Literal, Self, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.decoding import decode
from stages.effect import Reply, Usage
from stages.message import Assistant, Message, Status, System, Tool, ToolCall, User
from stages.wire.anthropic.messages import AnswerBlock, SignedThinking, block_decoder, sealed_blocks, unsealed_blocks
from stages.wire.deltas import Ended, Piece, ReasoningDelta
from stages.wire.faults import ERROR_STATUS
from stages.wire.openai.chat import arguments_text
from stages.wire.server.decoding import (
    BadRequest,
    cached,
    checked_choice,
    distinct,
    last_reply,
    offered_tool,
    read_part,
    request_decoder,
    sampling,
    schema_of,
)
from stages.wire.server.errors import RequestError
from stages.wire.server.request import ClientChoice, Foreign, OfferedTool, ServerRequest, TextFormat, Thinking
from stages.wire.server.streams import (
    Block,
    BlockClosed,
    BlockEvent,
    BlockGrown,
    BlockKind,
    BlockOpened,
    Blocks,
    CallIds,
    Envelope,
    Events,
    close_block,
    event,
)
from stages.wire.valid import call_as_text, is_object, paragraphs

# Tools of Anthropic's API and the choice among them, read as a server.
#
# A deferred tool is offered once a result refers to it. Tools of other types are run by the API itself, or their schema
# is known only to the model that was trained on them, so forge does not model them.


class _SentTool(Struct):
    """A tool of any type; the client's own have no type, or `custom`."""

    type: str | None = None
    name: str = ""
    description: str | None = None
    input_schema: Raw = Raw(b"null")
    defer_loading: bool | None = None


class _SentChoice(Struct):
    """Which calls may be made, and whether several at once."""

    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


_tools = msgspec.json.Decoder(list[_SentTool] | None)


def _decode_tools(tools: Raw, referenced: Container[str]) -> tuple[tuple[OfferedTool, ...], tuple[Foreign, ...]]:
    """The tools that the client runs, and those of other types."""
    known, deferred, foreign = _decoded_tools(tools)
    if not deferred:
        return known, foreign
    return tuple(t for t in known if t.spec.name not in deferred or t.spec.name in referenced), foreign


@cached
def _decoded_tools(tools: bytes) -> tuple[tuple[OfferedTool, ...], frozenset[str], tuple[Foreign, ...]]:
    """All tools, the names of the deferred ones, and those of other types."""
    known: list[OfferedTool] = []
    foreign: list[Foreign] = []
    listed = read_part(_tools, tools, "tools") or ()
    for number, tool in enumerate(listed):
        at = f"tools[{number}]"
        if tool.type not in (None, "custom"):
            foreign.append(Foreign(at=at, kind=(tool.type or "")[:50], fate="dropped"))
            continue
        known.append(offered_tool(tool.name, tool.description, tool.input_schema, at, "input_schema"))
    deferred = frozenset(tool.name for tool in listed if tool.defer_loading)
    return distinct(known), deferred, tuple(foreign)


def _decode_choice(choice: _SentChoice | None) -> ClientChoice:
    """Which calls are allowed or required. BadRequest for an unknown type."""
    match choice:
        case None | _SentChoice(type="auto"):
            return ClientChoice()
        case _SentChoice(type="none"):
            return ClientChoice(mode="none")
        case _SentChoice(type="any"):
            return ClientChoice(mode="required")
        case _SentChoice(type="tool", name=str() as name):
            return ClientChoice(mode="required", tools=(name,))
        case _SentChoice(type="tool"):
            raise BadRequest("field required", "tool_choice.name")
        case _SentChoice(type=kind):
            raise BadRequest(f"must be auto, any, tool or none, not {kind[:50]!r}", "tool_choice.type")


# Messages of Anthropic's API, read as a history.
#
# A message's text blocks are one text. Thinking is kept as reasoning; with a signature it is also sealed, because the
# API wants it back. A system message may appear anywhere.


class _SentBlock(AnswerBlock, kw_only=True):
    """A block of any type: of a reply, or a result."""

    type: str
    data: str | None = None
    tool_use_id: str | None = None
    content: Raw = Raw(b"null")
    is_error: bool | None = None


class _SentMessage(Struct):
    role: str
    content: str | list[_SentBlock]


class _Part(Struct):
    type: str
    text: str | None = None
    tool_name: str | None = None


class _Redacted(Struct, tag="redacted_thinking"):
    data: str


_parts = msgspec.json.Decoder(str | list[_Part] | None)


class _Reference(Struct, frozen=True, kw_only=True):
    """A deferred tool that a result makes available."""

    tool: str


_Read = Message | Foreign | _Reference


def _decode_history(messages: Sequence[_SentMessage]) -> Iterator[_Read]:
    """The messages, the parts that forge does not model, and the tools that results refer to.

    BadRequest for an unknown role, and for blocks without a required field. A backend of another protocol refuses a
    picture in the user's last message. Earlier pictures are noted, so that the conversation can continue.
    """
    last = last_reply(messages, lambda message: message.role == "assistant")
    names: dict[str, str] = {}
    turn = 0
    for number, message in enumerate(messages):
        at = f"messages[{number}]"
        content = message.content
        blocks = [_SentBlock(type="text", text=content)] if isinstance(content, str) else content
        match message.role:
            case "user":
                yield from _user(blocks, f"{at}.content", turn, names, fresh=number > last)
            case "assistant":
                turn += 1
                yield from _assistant(blocks, f"{at}.content", turn, names)
            case "system":
                yield System(text=_blocks_text(blocks, f"{at}.content"))
            case _:
                raise BadRequest(f"must be user, assistant or system, not {message.role[:50]!r}", f"{at}.role")


def _blocks_text(blocks: Sequence[_SentBlock], at: str) -> str:
    """The text of a system prompt. BadRequest for blocks of another type."""
    for number, block in enumerate(blocks):
        if block.type != "text":
            raise BadRequest(f"must be text, not {block.type[:50]!r}", f"{at}[{number}].type")
    return paragraphs(_text(block, f"{at}[{number}]") for number, block in enumerate(blocks))


def _text(block: _SentBlock, at: str) -> str:
    if block.text is None:
        raise BadRequest("field required", f"{at}.text")
    return block.text


def _user(blocks: Sequence[_SentBlock], at: str, turn: int, names: dict[str, str], *, fresh: bool) -> Iterator[_Read]:
    """The results first, whatever precedes them: they answer the reply before this message."""
    said: list[str] = []
    for number, block in enumerate(blocks):
        here = f"{at}[{number}]"
        match block.type:
            case "tool_result":
                yield from _result(block, here, turn, names)
            case "text":
                said.append(_text(block, here))
            case kind:
                said.append(f"[{kind[:50]} left out]")
                yield Foreign(at=here, kind=kind[:50], fate="refused" if fresh else "noted")
    if said or not blocks:
        yield User(text=paragraphs(said), turn=turn)


def _result(block: _SentBlock, at: str, turn: int, names: dict[str, str]) -> Iterator[_Read]:
    content = read_part(_parts, block.content, f"{at}.content")
    said = [content] if isinstance(content, str) else []
    for number, part in enumerate(content or () if not isinstance(content, str) else ()):
        if part.type == "text":
            said.append(part.text or "")
        elif part.type == "tool_reference" and part.tool_name:
            said.append(f"The tool {part.tool_name} can be called now.")
            yield _Reference(tool=part.tool_name)
        else:
            said.append(f"[{part.type[:50]} left out]")
            yield Foreign(at=f"{at}.content[{number}]", kind=part.type[:50], fate="noted")
    answered = block.tool_use_id or ""
    status: Status = "failed" if block.is_error else "succeeded"
    yield Tool(call_id=answered, name=names.get(answered, ""), text="\n".join(said), status=status, turn=turn)


def _assistant(blocks: Sequence[_SentBlock], at: str, turn: int, names: dict[str, str]) -> Iterator[_Read]:
    said: list[str] = []
    thought: list[str] = []
    sealed: list[bytes] = []
    calls: list[ToolCall] = []
    for number, block in enumerate(blocks):
        here = f"{at}[{number}]"
        match block.type:
            case "text":
                said.append(_text(block, here))
            case "thinking":
                thought.append(block.thinking or "")
                if block.signature:
                    sealed.append(_encode(SignedThinking(thinking=block.thinking or "", signature=block.signature)))
            case "redacted_thinking":
                sealed.append(_encode(_Redacted(data=block.data or "")))
            case "tool_use":
                calls.append(_call(block, here))
            case kind:
                yield Foreign(at=here, kind=kind[:50], fate="dropped")
    names.update((call.id, call.name) for call in calls)
    yield Assistant(
        text=paragraphs(said),
        reasoning=paragraphs(thought),
        sealed=sealed_blocks(sealed),
        calls=tuple(calls),
        turn=turn,
    )


def _call(block: _SentBlock, at: str) -> ToolCall:
    if not block.name:
        raise BadRequest("field required", f"{at}.name")
    return ToolCall(id=block.id or "", name=block.name, arguments=arguments_text(block.input) or "{}")


_encode = msgspec.json.Encoder().encode


# Errors of Anthropic's API: https://platform.claude.com/docs/en/api/errors.

_TYPES = {status: kind for kind, status in ERROR_STATUS.items()}

_THREAD = "thread_unsupported_request"
"""The code on which the official clients send the whole conversation instead of a thread."""


def error_object(error: RequestError) -> dict[str, object]:
    """The error as clients read it, with its outer object."""
    usual = "api_error" if error.status >= 500 else "invalid_request_error"
    said: dict[str, object] = {"type": _TYPES.get(error.status, usual), "message": error.message}
    if error.code == _THREAD:
        said["details"] = {"error_code": error.code, "unsupported": ["thread"]}
    return {"type": "error", "error": said}


# Requests of Anthropic's API, read as a server: https://platform.claude.com/docs/en/api/messages.
#
# Only text is modelled; `stages.wire.server.request` explains what happens to pictures, documents and the API's own
# tools. Cache marks and context management reach a backend of this protocol with the body, and are dropped for others.


class _Thinking(Struct):
    type: str


class _Format(Struct):
    type: str
    schema: Raw = Raw(b"null")


class _OutputConfig(Struct):
    effort: str | None = None
    format: _Format | None = None


class _Request(Struct):
    model: str
    messages: list[_SentMessage]
    max_tokens: int | None = None
    system: str | list[_SentBlock] | None = None
    tools: Raw = Raw(b"null")
    tool_choice: _SentChoice | None = None
    stream: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    thinking: _Thinking | None = None
    output_config: _OutputConfig | None = None
    output_format: _Format | None = None
    thread: Raw = Raw(b"null")
    mcp_servers: list[Raw] | None = None


def _served_with_limit(asked: _Request, body: bytes) -> ServerRequest:
    if asked.max_tokens is None:
        raise BadRequest("field required", "max_tokens")
    return _served(asked, body)


def _served(asked: _Request, body: bytes) -> ServerRequest:
    if bytes(asked.thread) != b"null":
        said = "this server keeps no threads; send the full conversation without it"
        raise BadRequest(said, "thread", code=_THREAD)
    if not asked.messages:
        raise BadRequest("must have at least one message", "messages")
    system = _blocks_text(asked.system, "system") if isinstance(asked.system, list) else asked.system
    found = [*([System(text=system)] if system else ()), *_decode_history(asked.messages)]
    tools, other = _decode_tools(asked.tools, {each.tool for each in found if isinstance(each, _Reference)})
    choice = asked.tool_choice
    config = asked.output_config or _OutputConfig()
    wanted = None if asked.thinking is None else asked.thinking.type != "disabled"
    hosted = (Foreign(at="mcp_servers", kind="tools of another server", fate="dropped"),) if asked.mcp_servers else ()
    return ServerRequest(
        protocol="messages",
        body=body,
        model=asked.model,
        history=tuple(each for each in found if isinstance(each, System | User | Assistant | Tool)),
        tools=tools,
        choice=checked_choice(_decode_choice(choice), tools),
        parallel=not (choice and choice.disable_parallel_tool_use),
        sampling=sampling(asked, {"stop": "stop_sequences"}),
        stream=bool(asked.stream),
        usage_in_stream=True,
        format=_format(config.format, "output_config.format") or _format(asked.output_format, "output_format"),
        thinking=Thinking(wanted=wanted, effort=config.effort or ""),
        foreign=(*(each for each in found if isinstance(each, Foreign)), *other, *hosted),
    )


decode_request = request_decoder(_Request, _served_with_limit)
"""The client's request; a RequestError names the wrong field and what it must be."""

decode_count_request = request_decoder(_Request, _served)
"""The prompt whose tokens are to be counted: a request without `max_tokens`."""


def _format(given: _Format | None, at: str) -> TextFormat | None:
    if given is None:
        return None
    if given.type != "json_schema":
        raise BadRequest(f"must be json_schema, not {given.type[:50]!r}", f"{at}.type")
    return TextFormat(schema=schema_of(given.schema, f"{at}.schema"))


# Whole replies of Anthropic's API, written as a server: https://platform.claude.com/docs/en/api/messages.
#
# Sealed thinking goes back unchanged; any other has an empty signature.

_STOPS = {"length": "max_tokens", "content_filter": "refusal", "pause_turn": "pause_turn"}
"""The finish reasons of chat completions in the API's words."""


def encode_reply(reply: Reply, envelope: Envelope) -> bytes:
    """The reply as the body of an answer.

    A call whose arguments are not a JSON object cannot be written as a call, and becomes text.
    """
    usage = reply.usage or Usage(prompt=envelope.prompt_tokens)
    sound = [is_object(call.arguments or "{}") for call in reply.calls]
    said = {**_message_object(envelope), "content": _content(reply, sound, envelope)}
    ended = {"stop_reason": _stop_of(reply.finish, called=any(sound)), "usage": _usage_object(usage)}
    return msgspec.json.encode({**said, **ended})


def _message_object(envelope: Envelope) -> dict[str, object]:
    """A message that has begun, without content."""
    said = {"id": envelope.id, "type": "message", "role": "assistant", "model": envelope.model_name}
    return {**said, "content": [], "stop_reason": None, "stop_sequence": None}


def _content(reply: Reply, sound: Sequence[bool], envelope: Envelope) -> list[object]:
    """The blocks of the reply. `sound` tells for each call whether its arguments are an object."""
    ids = CallIds(envelope=envelope, prefix="toolu").of_all(reply.calls)
    told = [call_as_text(call) for call, fits in zip(reply.calls, sound, strict=True) if not fits]
    text = paragraphs((reply.text, *told))
    uses = [
        {"type": "tool_use", "id": one, "name": call.name, "input": Raw((call.arguments or "{}").encode())}
        for call, one, fits in zip(reply.calls, ids, sound, strict=True)
        if fits
    ]
    return [*_thinking_blocks(reply), *([{"type": "text", "text": text}] if text else []), *uses]


def _thinking_blocks(reply: Reply) -> tuple[object, ...]:
    if sealed := unsealed_blocks(reply.sealed):
        return sealed
    return ({"type": "thinking", "thinking": reply.reasoning, "signature": ""},) if reply.reasoning else ()


def _stop_of(finish: str, *, called: bool) -> str:
    """The stop reason in the API's words: clients look for calls if it is `tool_use`."""
    return _STOPS.get(finish, "tool_use" if called else "end_turn")


def _usage_object(usage: Usage) -> dict[str, object]:
    """Token counts in the API's form, where cache reads are not part of the input."""
    return {
        "input_tokens": max(0, usage.prompt - usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }


# Passing the API's own messages on to a client: which events and answers clients accept unchanged.
#
# Clients ignore an event without a name, and crash if usage, a block's index or its end is missing. From the first such
# event on, forge writes the stream itself, counting the blocks that the server has begun.


class _StartUsage(Struct):
    input_tokens: int
    output_tokens: int


class _EndUsage(Struct):
    output_tokens: int


class _Block(Struct):
    type: str
    id: str = ""
    name: str = ""
    input: dict[str, Raw] = {}


class _Message(Struct):
    id: str
    type: Literal["message"]
    role: str
    model: str
    content: list[_Block]
    usage: _StartUsage
    stop_reason: str | None = None


class _Delta(Struct):
    type: str = ""
    stop_reason: str | None = None


class _Event(Struct):
    type: str
    index: int = -1
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: _EndUsage | None = None


_decode_event = msgspec.json.Decoder(_Event)
_message = msgspec.json.Decoder(_Message)

_KINDS: dict[str, BlockKind] = {"text": "text", "thinking": "reasoning", "tool_use": "call"}
"""The blocks that forge writes, too."""


# Streams of Anthropic's API, written as a server: https://platform.claude.com/docs/en/build-with-claude/streaming.
#
# `message_start`, then each block with its start, deltas and stop, then `message_delta` with the stop reason and usage,
# then `message_stop`. Clients ignore events without names. Thinking keeps the signature that its server gave it: the
# API accepts no other.


class _MessageEvents(Events, frozen=True, kw_only=True):
    open: int = -1
    """The number of the open block that is passed on; -1: none."""
    stopped: bool = False
    """Whether a stop reason was passed on."""

    def advance(self, piece: Piece) -> tuple[Self, bytes]:
        if not (isinstance(piece, ReasoningDelta) and piece.sealed) or self.blocks.holding:
            return super().advance(piece)
        events, opening = self.begin()
        blocks, sealed = _sealed(events.blocks, unsealed_blocks(piece.sealed), told=not piece.text)
        return replace(events, blocks=blocks), opening + sealed

    def ping(self) -> tuple[Self, bytes]:
        """An empty event, allowed even before the message begins."""
        return self, _event("ping")

    def fail(self, error: RequestError) -> bytes:
        """The error; nothing follows it."""
        return event(error_object(error), "error")

    def opening(self) -> tuple[Self, bytes]:
        usage = _usage_object(Usage(prompt=self.envelope.prompt_tokens))
        return self, _event("message_start", message={**_message_object(self.envelope), "usage": usage})

    def block(self, written: BlockEvent) -> tuple[Self, bytes]:
        return self, _block_event(written)

    def ending(self, ended: Ended) -> tuple[Self, bytes]:
        reason = {"stop_reason": _stop_of(ended.finish, called=bool(self.blocks.calls)), "stop_sequence": None}
        usage = _usage_object(ended.usage or Usage(prompt=self.envelope.prompt_tokens))
        return self, _event("message_delta", delta=reason, usage=usage) + _event("message_stop")

    def after(self, payload: bytes, name: bytes, /) -> Self | None:
        """The state after the event; None if clients do not accept it."""
        event = _decode_event.decode(payload)
        if event.type.encode() != name:
            return None
        match event:
            case _Event(type="message_start", message=_Message() as message) if message.id and not self.begun:
                envelope = replace(self.envelope, id=message.id, model=message.model)
                return replace(self.under(envelope), begun=True)
            case _Event(type="content_block_start", content_block=_Block() as block):
                following = self.begun and self.open < 0 and event.index == self.blocks.count
                return self._opened(block) if following else None
            case _Event(type="content_block_delta", delta=_Delta() as delta):
                return self if delta.type and 0 <= event.index == self.open else None
            case _Event(type="content_block_stop"):
                closed = replace(self, open=-1, blocks=replace(self.blocks, open=None))
                return closed if 0 <= event.index == self.open else None
            case _Event(type="message_delta", delta=_Delta() as delta, usage=_EndUsage()):
                return replace(self, stopped=bool(delta.stop_reason)) if self.open < 0 else None
            case _Event(type="message_stop"):
                return replace(self, over=True) if self.stopped else None
            case _Event(type="message_start" | "content_block_start" | "content_block_delta" | "message_delta"):
                return None
            case _:
                return self  # pings, errors, and events newer than this code

    def _opened(self, block: _Block) -> Self | None:
        blocks, kind = self.blocks, _KINDS.get(block.type)
        # A block of another kind is passed on whole; forge never writes into it.
        call = blocks.calls if kind == "call" else -1
        opened = None if kind is None else Block(kind=kind, number=blocks.count, call=call)
        if kind == "call":
            ids, given = blocks.ids.of(block.id, blocks.calls)
            # The input must come in deltas: some clients read it only there.
            if given != block.id or not block.name or block.input:
                return None
            blocks = replace(blocks, ids=ids, calls=blocks.calls + 1)
        return replace(self, open=blocks.count, blocks=replace(blocks, open=opened, count=blocks.count + 1))

    def calls_in(self, answer: bytes, /) -> tuple[str, ...] | None:
        """The ids of the calls in a whole answer; None if it or a call lacks what clients need."""
        message = _message.decode(answer)
        calls = [block for block in message.content if block.type == "tool_use"]
        whole = message.id and message.stop_reason and all(call.name for call in calls)
        return tuple(call.id for call in calls) if whole else None


def message_events(envelope: Envelope) -> Events:
    """A stream before its first event."""
    return _MessageEvents(envelope=envelope, blocks=Blocks(ids=CallIds(envelope=envelope, prefix="toolu")))


def _event(name: str, **fields: object) -> bytes:
    return event({"type": name, **fields}, name)


def _sealed(blocks: Blocks, thinking: tuple[Raw, ...], *, told: bool) -> tuple[Blocks, bytes]:
    """Sealed thinking, each block whole; for the open block, if its text was sent (`told`), only the signature."""
    events: list[bytes] = []
    first = decode(block_decoder, bytes(thinking[0])) if told and thinking else None
    if first and first.type == "thinking" and blocks.open is not None and blocks.open.kind == "reasoning":
        delta = {"type": "signature_delta", "signature": first.signature or ""}
        events.append(_event("content_block_delta", index=blocks.open.number, delta=delta))
        thinking = thinking[1:]
    blocks, closed = close_block(blocks)
    events += [_block_event(each) for each in closed]
    for number, raw in enumerate(thinking, start=blocks.count):
        block = decode(block_decoder, bytes(raw))
        empty = {"type": "thinking", "thinking": "", "signature": ""} if block.type == "thinking" else raw
        parts = {"thinking": block.thinking, "signature": block.signature}
        deltas = ({"type": f"{kind}_delta", kind: said} for kind, said in parts.items() if said)
        events.append(_event("content_block_start", index=number, content_block=empty))
        events += [_event("content_block_delta", index=number, delta=delta) for delta in deltas]
        events.append(_event("content_block_stop", index=number))
    return replace(blocks, count=blocks.count + len(thinking)), b"".join(events)


def _block_event(written: BlockEvent) -> bytes:
    number = written.block.number
    match written:
        case BlockOpened(block=block):
            return _event("content_block_start", index=number, content_block=_empty(block))
        case BlockGrown(block=block, text=text):
            return _event("content_block_delta", index=number, delta=_delta(block, text))
        case BlockClosed():
            return _event("content_block_stop", index=number)
        case _:
            assert_never(written)


def _empty(block: Block) -> dict[str, object]:
    match block.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
        case "call":
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}


def _delta(block: Block, text: str) -> dict[str, object]:
    match block.kind:
        case "reasoning":
            return {"type": "thinking_delta", "thinking": text}
        case "text":
            return {"type": "text_delta", "text": text}
        case "call":
            return {"type": "input_json_delta", "partial_json": text}
