"""Blocks: a reply as parts that come one after the other, for protocols whose streams have one part open at a time.

Reasoning, text and each call is a block. Text and reasoning are written as they come. Once a call is being written,
whatever is not of it is held until the reply ends: its arguments may still grow, and no block is opened twice. So the
first call streams, and those after it follow at the end, in order.
"""

from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta
from stages.wire.lines import appended

BlockKind = Literal["reasoning", "text", "call"]


class Block(Struct, frozen=True, kw_only=True):
    """A part of a reply; `number` counts the blocks, `call` the calls, each from 0."""

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
    """The block ends; `text` is all of it."""

    block: Block
    text: str


BlockEvent = BlockOpened | BlockGrown | BlockClosed


class _Call(Struct, frozen=True, kw_only=True):
    """A call by the index that its pieces have."""

    index: int
    name: str = ""
    id: str = ""
    arguments: tuple[bytes, ...] = ()


class _Held(Struct, frozen=True, kw_only=True):
    """What waits for the end of the reply, each text in few parts."""

    reasoning: tuple[bytes, ...] = ()
    text: tuple[bytes, ...] = ()
    calls: tuple[_Call, ...] = ()


class Blocks(Struct, frozen=True, kw_only=True):
    """How far a reply has been written. Begin with `Blocks()`."""

    open: Block | None = None
    said: tuple[bytes, ...] = ()
    """What the open block holds so far."""
    calling: _Call | None = None
    """The call that is being written. Its block opens with its first arguments: until then its name may grow."""
    held: _Held = _Held()
    count: int = 0
    calls: int = 0


_Written = tuple[Blocks, tuple[BlockEvent, ...]]


def advance_blocks(blocks: Blocks, piece: Piece) -> _Written:
    """The next piece, and what it writes; `Ended` closes all that is open, and writes what was held."""
    match piece:
        case TextDelta(text=text):
            return _grown(blocks, "text", text) if blocks.calling is None else (_hold(blocks, piece), ())
        case ReasoningDelta(text=text):
            return _grown(blocks, "reasoning", text) if blocks.calling is None else (_hold(blocks, piece), ())
        case CallStarted(index=index, name=name, id=given):
            if blocks.calling is None or (blocks.calling.index == index and not _is_written(blocks)):
                return replace(blocks, calling=_Call(index=index, name=name, id=given)), ()
            return (blocks if blocks.calling.index == index else _hold(blocks, piece)), ()
        case CallDelta(index=index, arguments=more):
            calling = blocks.calling or _Call(index=index)
            if calling.index != index:
                return _hold(blocks, piece), ()
            return _grown(replace(blocks, calling=calling), "call", more)
        case Ended():
            return _ended(blocks)
        case _:
            assert_never(piece)


def _is_written(blocks: Blocks) -> bool:
    return blocks.open is not None and blocks.open.kind == "call"


def _grown(blocks: Blocks, kind: BlockKind, text: str) -> _Written:
    """With more of a block of that kind, opened where another is."""
    if not text:
        return blocks, ()
    before: tuple[BlockEvent, ...] = ()
    if blocks.open is None or blocks.open.kind != kind:
        blocks, before = _opened(blocks, kind)
    if blocks.open is None:
        return blocks, before
    grown = BlockGrown(block=blocks.open, text=text)
    return replace(blocks, said=appended(blocks.said, text.encode())), (*before, grown)


def _opened(blocks: Blocks, kind: BlockKind) -> _Written:
    blocks, before = close_block(blocks)
    block = Block(kind=kind, number=blocks.count)
    if kind == "call" and blocks.calling is not None:
        block = replace(block, call=blocks.calls, name=blocks.calling.name, id=blocks.calling.id)
    after = replace(blocks, open=block, count=blocks.count + 1, calls=blocks.calls + (kind == "call"))
    return after, (*before, BlockOpened(block=block))


def close_block(blocks: Blocks) -> _Written:
    if blocks.open is None:
        return blocks, ()
    closed = BlockClosed(block=blocks.open, text=_joined(blocks.said))
    return replace(blocks, open=None, said=()), (closed,)


def _ended(blocks: Blocks) -> _Written:
    events: list[BlockEvent] = []

    def add(written: _Written) -> None:
        nonlocal blocks
        blocks, more = written
        events.extend(more)

    held = blocks.held
    if blocks.calling is not None and not _is_written(blocks):
        add(_opened(blocks, "call"))
    add(close_block(blocks))
    blocks = replace(blocks, calling=None, held=_Held())
    add(_grown(blocks, "reasoning", _joined(held.reasoning)))
    add(_grown(blocks, "text", _joined(held.text)))
    for call in sorted(held.calls, key=lambda call: call.index):
        add(_opened(replace(blocks, calling=call), "call"))
        add(_grown(blocks, "call", _joined(call.arguments)))
    add(close_block(blocks))
    return blocks, tuple(events)


def _hold(blocks: Blocks, piece: TextDelta | ReasoningDelta | CallStarted | CallDelta) -> Blocks:
    return replace(blocks, held=_added(blocks.held, piece))


def _added(held: _Held, piece: TextDelta | ReasoningDelta | CallStarted | CallDelta) -> _Held:
    match piece:
        case TextDelta(text=text):
            return replace(held, text=appended(held.text, text.encode()))
        case ReasoningDelta(text=text):
            return replace(held, reasoning=appended(held.reasoning, text.encode()))
        case CallStarted(index=index, name=name, id=given):
            return _with_call(held, replace(_call(held, index), name=name, id=given))
        case CallDelta(index=index, arguments=more):
            call = _call(held, index)
            return _with_call(held, replace(call, arguments=appended(call.arguments, more.encode())))
        case _:
            assert_never(piece)


def _call(held: _Held, index: int) -> _Call:
    return next((call for call in held.calls if call.index == index), _Call(index=index))


def _with_call(held: _Held, call: _Call) -> _Held:
    others = (other for other in held.calls if other.index != call.index)
    return replace(held, calls=(*others, call))


def _joined(parts: tuple[bytes, ...]) -> str:
    return b"".join(parts).decode()
