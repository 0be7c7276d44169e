"""Replies as the parts of an answer: ids of calls, blocks, and the server-sent events of a stream."""

from typing import Literal, Self, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages.effect import RawCall, Reply
from stages.message import Assistant
from stages.wire.deltas import (
    CallDelta,
    CallStarted,
    Ended,
    Piece,
    ReasoningDelta,
    TextDelta,
    appended,
    gather_reply,
    payloads,
)
from stages.wire.server.errors import RequestError
from stages.wire.server.request import ServerRequest


class Envelope(Struct, frozen=True, kw_only=True):
    """The fields of an answer beside the reply. `created` is in seconds since 1970.

    `prompt_tokens` is the size of the prompt if it is known before the reply: Anthropic's streams begin with it.
    """

    id: str
    created: int
    request: ServerRequest
    model: str = ""
    """The model that answers, if it is not the requested one."""
    prompt_tokens: int = 0

    @property
    def model_name(self) -> str:
        """The model's name for the client."""
        return self.model or self.request.model

    def part_id(self, prefix: str, number: int) -> str:
        """The id of a part of this answer, as unique as the answer's own: `call_3f2a_0`."""
        own = self.id.replace("-", "_", 1).partition("_")[2] or self.id
        return f"{prefix}_{own}_{number}"


class CallIds(Struct, frozen=True, kw_only=True):
    """The ids of an answer's calls: the server's own, or generated ones where that is empty or already used.

    Clients match results by id: if one is missing or repeated, they stop or mix calls up.
    """

    envelope: Envelope
    prefix: str
    taken: frozenset[str] | None = None
    """The ids in the request's history and in this answer; None: not collected yet."""

    def of(self, given: str, number: int) -> tuple[Self, str]:
        """The id of the answer's call `number`, counted from 0."""
        taken = self._before if self.taken is None else self.taken
        made = given if given and given not in taken else self.envelope.part_id(self.prefix, number)
        return replace(self, taken=taken | {made}), made

    def of_all(self, calls: tuple[RawCall, ...]) -> tuple[str, ...]:
        """The ids of all calls of a whole reply."""
        ids, made = self, list[str]()
        for number, call in enumerate(calls):
            ids, one = ids.of(call.id, number)
            made.append(one)
        return tuple(made)

    def are_new(self, given: tuple[str, ...]) -> bool:
        """Whether none of these is empty or already used."""
        return not given or (len({*given} - self._before) == len(given) and "" not in given)

    @property
    def _before(self) -> frozenset[str]:
        history = self.envelope.request.history
        return frozenset(call.id for message in history if isinstance(message, Assistant) for call in message.calls)


def event(payload: object, name: str = "") -> bytes:
    """A server-sent event: an optional name and a line of JSON."""
    return (b"event: %b\n" % name.encode() if name else b"") + b"data: %b\n\n" % msgspec.json.encode(payload)


# Blocks: a reply as a sequence of parts, for protocols whose streams have only one part open at a time.
#
# Reasoning, text and each call are blocks. Text and reasoning are written as they arrive. From the first call on,
# everything is held until the reply ends: the pieces of several calls may come by turns, and a closed block cannot be
# opened again. Only calls that the backend's own events began, before forge took over, grow in place.

BlockKind = Literal["reasoning", "text", "call"]


class Block(Struct, frozen=True, kw_only=True):
    """A part of a reply. `number` counts the blocks, `call` the calls, both from 0."""

    kind: BlockKind
    number: int
    call: int = -1
    name: str = ""
    id: str = ""


class BlockOpened(Struct, frozen=True, kw_only=True):
    """The block begins."""

    block: Block


class BlockGrown(Struct, frozen=True, kw_only=True):
    """More of its text, or of its arguments."""

    block: Block
    text: str


class BlockClosed(Struct, frozen=True, kw_only=True):
    """The block ends; `text` is its whole text."""

    block: Block
    text: str


BlockEvent = BlockOpened | BlockGrown | BlockClosed


_Held = tuple["_Held", Piece] | None
"""The held pieces as a linked list, last one first, so that adding one copies nothing."""


class Blocks(Struct, frozen=True, kw_only=True):
    """The state of writing a reply as blocks. `ids` are those of its calls."""

    ids: CallIds
    open: Block | None = None
    said: tuple[bytes, ...] = ()
    """The text of the open block so far."""
    held: _Held = None
    count: int = 0
    calls: int = 0

    @property
    def holding(self) -> bool:
        """Whether text and reasoning are held, because a call has begun."""
        return self.held is not None or (self.open is not None and self.open.kind == "call")


_Written = tuple[Blocks, tuple[BlockEvent, ...]]


def _advanced(blocks: Blocks, piece: Piece) -> _Written:
    """The state after the next piece, and what to write. `Ended` closes the open block and writes the held pieces."""
    match piece:
        case TextDelta(text=text) if not blocks.holding:
            return _grown(blocks, "text", text)
        case ReasoningDelta(text=text) if not blocks.holding:
            return _grown(blocks, "reasoning", text)
        case CallStarted(index=index) if index < blocks.calls:
            return blocks, ()  # begun by the backend's own events: clients would append the name or id
        case CallDelta(index=index, arguments=more) if blocks.open is not None and index <= blocks.open.call:
            # Chat completions never close a call: those that the backend began may grow by turns.
            return blocks, (BlockGrown(block=replace(blocks.open, call=index), text=more),)
        case TextDelta() | ReasoningDelta() | CallStarted() | CallDelta():
            return replace(blocks, held=(blocks.held, piece)), ()
        case Ended():
            return _ended(blocks)
        case _:
            assert_never(piece)


def _grown(blocks: Blocks, kind: BlockKind, text: str) -> _Written:
    """The state with more text in a block of that kind, opened if another kind is open."""
    if not text:
        return blocks, ()
    block, before = blocks.open, tuple[BlockEvent, ...]()
    if block is None or block.kind != kind:
        block = Block(kind=kind, number=blocks.count)
        blocks, before = _opened(blocks, block)
    grown = BlockGrown(block=block, text=text)
    return replace(blocks, said=appended(blocks.said, text.encode())), (*before, grown)


def _opened(blocks: Blocks, block: Block) -> _Written:
    blocks, before = close_block(blocks)
    return replace(blocks, open=block, count=blocks.count + 1), (*before, BlockOpened(block=block))


def close_block(blocks: Blocks) -> _Written:
    """The state without an open block, and the event that closes it."""
    if blocks.open is None:
        return blocks, ()
    closed = BlockClosed(block=blocks.open, text=b"".join(blocks.said).decode())
    return replace(blocks, open=None, said=()), (closed,)


def _ended(blocks: Blocks) -> _Written:
    events: list[BlockEvent] = []

    def add(written: _Written) -> None:
        nonlocal blocks
        blocks, more = written
        events.extend(more)

    pieces: list[Piece] = [Ended()]
    while blocks.held is not None:
        before, piece = blocks.held
        pieces.append(piece)
        blocks = replace(blocks, held=before)
    held = gather_reply(reversed(pieces))
    if isinstance(held, Reply):
        add(_grown(blocks, "reasoning", held.reasoning))
        add(_grown(blocks, "text", held.text))
        for call in held.calls:
            ids, made = blocks.ids.of(call.id, blocks.calls)
            block = Block(kind="call", number=blocks.count, call=blocks.calls, name=call.name, id=made)
            blocks = replace(blocks, ids=ids, calls=blocks.calls + 1)
            add(_opened(blocks, block))
            add(_grown(blocks, "call", call.arguments))
    add(close_block(blocks))
    return blocks, tuple(events)


# Events: a reply as a stream. The order of blocks is the same in every protocol; each protocol writes its own events.
#
# A stream is a fold: `begin`, then `advance` with each piece of the reply up to `Ended`, which ends the stream. Each
# step returns the next state and the bytes to send. `ping` keeps a silent connection alive with an event that all
# clients accept; `fail` ends the stream with an error.
#
# A backend that speaks the client's protocol writes the events itself, and `pass_on` follows them as far as clients
# accept them unchanged. From any event on, forge can write the rest with `advance`, under the same ids.


class Events(Struct, frozen=True, kw_only=True):
    """The state of a stream of events, whoever writes them. Each protocol has a subclass."""

    envelope: Envelope
    blocks: Blocks
    begun: bool = False
    """Whether the client has seen the beginning of the message."""
    over: bool = False
    """Whether the client has seen the end of a message that was passed on."""

    def begin(self) -> tuple[Self, bytes]:
        """The events that open the stream; nothing if it is open."""
        return (self, b"") if self.begun else replace(self, begun=True).opening()

    def advance(self, piece: Piece) -> tuple[Self, bytes]:
        """The events for the next piece."""
        events, opening = self.begin()
        blocks, written = _advanced(events.blocks, piece)
        events, parts = replace(events, blocks=blocks), [opening]
        for each in written:
            events, more = events.block(each)
            parts.append(more)
        if isinstance(piece, Ended):
            events, more = events.ending(piece)
            parts.append(more)
        return events, b"".join(parts)

    def ping(self) -> tuple[Self, bytes]:
        """An event without content."""
        raise NotImplementedError

    def fail(self, error: RequestError) -> bytes:
        """The event that ends the stream with an error; nothing follows it."""
        raise NotImplementedError

    def opening(self) -> tuple[Self, bytes]:
        """The events before the first block."""
        raise NotImplementedError

    def block(self, written: BlockEvent) -> tuple[Self, bytes]:
        """The events for a change to a block."""
        raise NotImplementedError

    def ending(self, ended: Ended) -> tuple[Self, bytes]:
        """The events after the last block."""
        raise NotImplementedError

    def pass_on(self, event: bytes) -> tuple[Self, bool]:
        """The state after the backend's next event, and whether clients accept it; if not, the state is unchanged."""
        lines = event.splitlines()
        found = payloads(lines)
        if not found:
            return self, True  # a comment
        name = next((line[6:].strip() for line in reversed(lines) if line.startswith(b"event:")), b"")
        try:
            after = self.after(found[0], name) if len(found) == 1 else None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            after = None
        return (self, False) if after is None else (after, True)

    def takes(self, answer: bytes) -> bool:
        """Whether clients accept this whole answer of a backend unchanged."""
        try:
            calls = self.calls_in(answer)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        return calls is not None and self.blocks.ids.are_new(calls)

    def after(self, payload: bytes, name: bytes, /) -> Self | None:  # noqa: ARG002 - for protocols of a backend
        """The state after a backend's event of that name; None if clients do not accept it."""
        return None

    def calls_in(self, answer: bytes, /) -> tuple[str, ...] | None:  # noqa: ARG002 - as `after`
        """The ids of the calls in a whole answer of a backend; None if clients do not accept it."""
        return None

    def under(self, envelope: Envelope) -> Self:
        """The same state for that envelope: the first event of a backend has the id and the model."""
        blocks = replace(self.blocks, ids=replace(self.blocks.ids, envelope=envelope))
        return replace(self, envelope=envelope, blocks=blocks)
