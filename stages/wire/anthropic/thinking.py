"""Thinking of Anthropic's models: its blocks go through a history and back to the API unchanged."""

from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from stages.repair.decoding import decode

THINKING = frozenset({"thinking", "redacted_thinking"})
"""Types of the blocks that hold thinking."""

_blocks = msgspec.json.Decoder(tuple[Raw, ...])


def unsealed_blocks(sealed: str) -> tuple[Raw, ...]:
    """Thinking as the API gave it; none where it came over another wire."""
    try:
        return decode(_blocks, sealed) if sealed else ()
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


def sealed_reply(body: bytes) -> str:
    """The thinking of a whole answer, sealed; empty for none."""
    blocks = decode(_whole, body).content
    return sealed_blocks(block for block in blocks if decode(_kind, bytes(block)).type in THINKING)
