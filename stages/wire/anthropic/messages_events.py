"""Streams of Anthropic's API, written as a server: https://platform.claude.com/docs/en/build-with-claude/streaming.

`message_start`, then each block with its start, its deltas and its stop, `message_delta` with the reason and the usage,
`message_stop`. Events have names, or clients don't see them. Thinking has its signature where its server gave one: the
API takes it back with no other.
"""

from typing import Self, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.effect import Usage
from stages.repair.decoding import decode
from stages.wire.answers import CallIds, Envelope, event
from stages.wire.anthropic.errors import error_object
from stages.wire.anthropic.messages_reply import message_object, stop_of, usage_object
from stages.wire.anthropic.thinking import unsealed_blocks
from stages.wire.blocks import (
    Block,
    BlockClosed,
    BlockEvent,
    BlockGrown,
    BlockOpened,
    Blocks,
    advance_blocks,
    close_block,
)
from stages.wire.deltas import Ended, Piece, ReasoningDelta
from stages.wire.served import RequestError


class _Thinking(Struct):
    """A sealed block; one whose text is hidden has neither."""

    type: str
    thinking: str = ""
    signature: str = ""

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """What comes in deltas, by its name."""
        return (("thinking", self.thinking), ("signature", self.signature))


_thinking = msgspec.json.Decoder(_Thinking)


class MessageEvents(Struct, frozen=True, kw_only=True):
    """How far a stream has been written. Make it with `message_events`."""

    envelope: Envelope
    ids: CallIds
    begun: bool = False
    blocks: Blocks = Blocks()

    def begin(self) -> tuple[Self, bytes]:
        """The event that opens the message; nothing where it was sent."""
        if self.begun:
            return self, b""
        usage = usage_object(Usage(prompt=self.envelope.prompt_tokens))
        message = {**message_object(self.envelope), "usage": usage}
        return replace(self, begun=True), _event("message_start", message=message)

    def ping(self) -> tuple[Self, bytes]:
        """An event that says nothing; it may come before the message."""
        return self, _event("ping")

    def fail(self, error: RequestError) -> bytes:
        """The error; nothing follows it."""
        return event(error_object(error), "error")

    def advance(self, piece: Piece) -> tuple[Self, bytes]:
        """The events of the next piece."""
        after, opening = self.begin()
        if isinstance(piece, ReasoningDelta) and piece.sealed and after.blocks.calling is None:
            blocks, sealed = _sealed(after.blocks, unsealed_blocks(piece.sealed), told=not piece.text)
            return replace(after, blocks=blocks), opening + sealed
        blocks, written = advance_blocks(after.blocks, piece)
        ids, events = after.ids, [opening]
        for each in written:
            call_id = ""
            if isinstance(each, BlockOpened) and each.block.kind == "call":
                ids, call_id = ids.of(each.block.id, each.block.call)
            events.append(_block_event(each, call_id))
        if isinstance(piece, Ended):
            events.append(_ending(piece, blocks, self.envelope))
        return replace(after, blocks=blocks, ids=ids), b"".join(events)


def message_events(envelope: Envelope) -> MessageEvents:
    """A stream that has not begun."""
    return MessageEvents(envelope=envelope, ids=CallIds(envelope=envelope, prefix="toolu"))


def _event(name: str, **fields: object) -> bytes:
    return event({"type": name, **fields}, name)


def _sealed(blocks: Blocks, thinking: tuple[Raw, ...], *, told: bool) -> tuple[Blocks, bytes]:
    """Thinking as it was sealed, each block whole; of the open one, where it was `told`, the signature alone."""
    events: list[bytes] = []
    first = decode(_thinking, bytes(thinking[0])) if told and thinking else None
    if first and first.type == "thinking" and blocks.open is not None and blocks.open.kind == "reasoning":
        delta = {"type": "signature_delta", "signature": first.signature}
        events.append(_event("content_block_delta", index=blocks.open.number, delta=delta))
        thinking = thinking[1:]
    blocks, closed = close_block(blocks)
    events += [_block_event(each, "") for each in closed]
    for number, raw in enumerate(thinking, start=blocks.count):
        block = decode(_thinking, bytes(raw))
        empty = {"type": "thinking", "thinking": "", "signature": ""} if block.type == "thinking" else raw
        deltas = ({"type": f"{kind}_delta", kind: said} for kind, said in block.parts if said)
        events.append(_event("content_block_start", index=number, content_block=empty))
        events += [_event("content_block_delta", index=number, delta=delta) for delta in deltas]
        events.append(_event("content_block_stop", index=number))
    return replace(blocks, count=blocks.count + len(thinking)), b"".join(events)


def _block_event(written: BlockEvent, call_id: str) -> bytes:
    number = written.block.number
    match written:
        case BlockOpened(block=block):
            return _event("content_block_start", index=number, content_block=_empty(block, call_id))
        case BlockGrown(block=block, text=text):
            return _event("content_block_delta", index=number, delta=_delta(block, text))
        case BlockClosed():
            return _event("content_block_stop", index=number)
        case _:
            assert_never(written)


def _empty(block: Block, call_id: str) -> dict[str, object]:
    match block.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
        case "call":
            return {"type": "tool_use", "id": call_id, "name": block.name, "input": {}}


def _delta(block: Block, text: str) -> dict[str, object]:
    match block.kind:
        case "reasoning":
            return {"type": "thinking_delta", "thinking": text}
        case "text":
            return {"type": "text_delta", "text": text}
        case "call":
            return {"type": "input_json_delta", "partial_json": text}


def _ending(ended: Ended, blocks: Blocks, envelope: Envelope) -> bytes:
    reason = {"stop_reason": stop_of(ended.finish, called=bool(blocks.calls)), "stop_sequence": None}
    usage = usage_object(ended.usage or Usage(prompt=envelope.prompt_tokens))
    return _event("message_delta", delta=reason, usage=usage) + _event("message_stop")
