"""Watcher: passes the deltas of a reply to `on_chunk` as they arrive."""

import inspect
from collections.abc import Awaitable, Callable

from forge.errors import WatcherError
from stages import reasoning
from stages.effect import Fault, Replied, Send, Undelivered
from stages.wire.deltas import Delta, Piece, Retry, reply_pieces, watched_deltas

OnChunk = Callable[[Delta], Awaitable[None] | None]
"""A plain or async function, called with each delta; the stream waits for it."""


class Watcher:
    """Passes the deltas of one request, over all its attempts, to `on_chunk`."""

    def __init__(self, on_chunk: OnChunk) -> None:
        self._on_chunk = on_chunk
        self._split = reasoning.Split()

    async def see(self, piece: Piece) -> None:
        """Pass on a piece of the reply. WatcherError if `on_chunk` fails."""
        self._split, deltas = watched_deltas(self._split, piece)
        for delta in deltas:
            await self._tell(delta)

    async def forget(self, fault: Fault, attempt: int, seconds: float) -> None:
        """Say that this attempt is void and the next starts after so many seconds."""
        self._split = reasoning.Split()
        await self._tell(Retry(fault=fault, attempt=attempt, seconds=seconds))

    async def _tell(self, delta: Delta) -> None:
        try:
            told = self._on_chunk(delta)
            if inspect.isawaitable(told):
                await told
        # Unwrapped, a time-out in `on_chunk` would be taken for one of the transport.
        except Exception as error:
            raise WatcherError(f"on_chunk failed at a {type(delta).__name__}: {error!r}") from error


async def in_one_go(
    send: Callable[[Send], Awaitable[Replied | Undelivered]], effect: Send, on_chunk: OnChunk
) -> Replied | Undelivered:
    """The answer of a backend that cannot stream, passed to `on_chunk` once it is complete."""
    outcome = await send(effect)
    if isinstance(outcome, Replied):
        watcher = Watcher(on_chunk)
        for piece in reply_pieces(outcome.reply):
            await watcher.see(piece)
    return outcome
