"""A streamed reply: read chunk by chunk, told to the watcher meanwhile, gathered into a Reply."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx

from forge.interpreters.http_body import Bounded, TooLargeError
from forge.runtime.watcher import Watcher
from stages.effect import Fault, Reply
from stages.wire.deltas import Decoder, Ended, Piece, gather_reply

STREAM_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a stream: some 250,000 tokens, as each arrives in JSON of its own."""

PIECES_LIMIT = 250_000
"""Maximum pieces of a reply: as many tokens, as a server sends no smaller ones."""

_LINGER = 0.5
"""Seconds to wait for the end of the body after the end of the reply, so that the connection can be reused."""


async def read_stream(chunks: AsyncIterator[bytes], decoder: Decoder, watcher: Watcher) -> Reply | Fault:
    """The reply that a body streams, told to the watcher while it comes; or the fault at which it ended."""
    pieces: list[Piece | Fault] = []
    bounded = Bounded(chunks, STREAM_LIMIT)
    try:
        async for chunk in bounded:
            decoder, added = decoder.advance(chunk)
            if len(pieces) + len(added) > PIECES_LIMIT:
                return Fault(kind="too_large", detail=f"the stream has more than {PIECES_LIMIT} pieces of a reply")
            if await _see(added, pieces, watcher):
                await _linger(bounded)
                return gather_reply(pieces)
    except TooLargeError:
        return Fault(kind="too_large", detail=f"the stream has more than {STREAM_LIMIT} bytes")
    await _see(decoder.finish(), pieces, watcher)
    return gather_reply(pieces)


async def _see(added: tuple[Piece | Fault, ...], pieces: list[Piece | Fault], watcher: Watcher) -> bool:
    """Note and tell what was read; whether that was the end, one way or the other."""
    for piece in added:
        pieces.append(piece)
        if isinstance(piece, Fault):
            return True
        await watcher.see(piece)
        if isinstance(piece, Ended):
            return True
    return False


async def _linger(chunks: Bounded) -> None:
    """Read to the end of the body, for a moment: what goes wrong now takes nothing from the reply."""
    with suppress(TimeoutError, httpx.HTTPError, OSError, TooLargeError):
        async with asyncio.timeout(_LINGER):
            async for _ in chunks:
                pass
