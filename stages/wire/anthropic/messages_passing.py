"""Passing the API's own messages on to a client: which events and answers clients take as they are.

Clients see no event without its name, and crash where usage, a block's index or its end is missing. From the first
event on that would do that, forge writes the stream: the blocks that the server has begun are counted.
"""

from typing import Literal, Self, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.wire.answers import CallIds, Envelope
from stages.wire.anthropic.messages_events import MessageEvents, message_events
from stages.wire.blocks import Block, BlockKind, Blocks
from stages.wire.lines import payloads


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


_event = msgspec.json.Decoder(_Event)
_message = msgspec.json.Decoder(_Message)

_KINDS: dict[str, BlockKind] = {"text": "text", "thinking": "reasoning", "tool_use": "call"}
"""The blocks that forge writes too."""


class PassedMessage(Struct, frozen=True, kw_only=True):
    """What of a server's stream has been passed on. Make it with `passed_message`."""

    envelope: Envelope
    ids: CallIds
    begun: bool = False
    open: int = -1
    """The number of the open block; -1: none is."""
    blocks: Blocks = Blocks()
    stopped: bool = False
    """Whether the reason was said for which the message ends."""
    over: bool = False

    def advance(self, event: bytes) -> tuple[Self, bool]:
        """After the server's next event; whether clients take it as it is. If not, it is as if it had not come."""
        lines = event.splitlines()
        found = payloads(lines)
        if not found:
            return self, True  # a comment
        try:
            told = _event.decode(found[0])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self, False
        named = any(line.startswith(b"event:") and line[6:].strip() == told.type.encode() for line in lines)
        after = _after(self, told) if named and len(found) == 1 else None
        return (self, False) if after is None else (after, True)

    def takes(self, answer: bytes) -> bool:
        """Whether clients take a whole answer as it is."""
        try:
            message = _message.decode(answer)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        calls = [block for block in message.content if block.type == "tool_use"]
        named = bool(message.id and message.stop_reason) and all(call.name for call in calls)
        return named and self.ids.are_new(tuple(call.id for call in calls))

    def go_on(self) -> MessageEvents:
        """What writes the rest of the stream."""
        return replace(message_events(self.envelope), ids=self.ids, begun=self.begun, blocks=self.blocks)


def passed_message(envelope: Envelope) -> PassedMessage:
    """A stream of which nothing has been passed on."""
    return PassedMessage(envelope=envelope, ids=CallIds(envelope=envelope, prefix="toolu"))


_P = TypeVar("_P", bound=PassedMessage)


def _after(passed: _P, event: _Event) -> _P | None:
    """After the event; None where clients don't take it."""
    match event:
        case _Event(type="message_start", message=_Message() as message) if message.id and not passed.begun:
            envelope = replace(passed.envelope, id=message.id, model=message.model)
            return replace(passed, envelope=envelope, ids=replace(passed.ids, envelope=envelope), begun=True)
        case _Event(type="content_block_start", content_block=_Block() as block):
            following = passed.begun and passed.open < 0 and event.index == passed.blocks.count
            return _opened(passed, block) if following else None
        case _Event(type="content_block_delta", delta=_Delta() as delta):
            return passed if delta.type and 0 <= event.index == passed.open else None
        case _Event(type="content_block_stop"):
            closed = replace(passed, open=-1, blocks=replace(passed.blocks, open=None))
            return closed if 0 <= event.index == passed.open else None
        case _Event(type="message_delta", delta=_Delta() as delta, usage=_EndUsage()):
            return replace(passed, stopped=bool(delta.stop_reason)) if passed.open < 0 else None
        case _Event(type="message_stop"):
            return replace(passed, over=True) if passed.stopped else None
        case _Event(type="message_start" | "content_block_start" | "content_block_delta" | "message_delta"):
            return None
        case _:
            return passed  # a ping, an error, and what is newer than this


def _opened(passed: _P, block: _Block) -> _P | None:
    number, calls, kind = passed.blocks.count, passed.blocks.calls, _KINDS.get(block.type)
    # A block of another kind is passed on whole: nothing is written into it.
    opened = None if kind is None else Block(kind=kind, number=number)
    if block.type == "tool_use":
        ids, given = passed.ids.of(block.id, calls)
        # The input comes in deltas: some clients read it there alone.
        if given != block.id or not block.name or block.input:
            return None
        passed, calls = replace(passed, ids=ids), calls + 1
    return replace(passed, open=number, blocks=Blocks(open=opened, count=number + 1, calls=calls))
