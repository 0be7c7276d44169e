"""A model for each purpose: one for the turns of a run, another for its summaries."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from forge.connection import AnyBackend, Connection
from forge.runtime.options import checked_options
from forge.runtime.reaching import reached
from forge.runtime.watcher import OnChunk
from stages.effect import Replied, Send, Undelivered


class ByPurpose:
    """Two backends as one: summaries (`summarize` of a workflow) are asked of `summaries`, all else of `turns`.

    Each is asked in its own protocol, mode and sampling. A conversation that has no room in the context of `summaries`
    is summed up by `turns`, and so are those of a run once a summary could not be used.
    """

    @checked_options
    def __init__(self, turns: AnyBackend, *, summaries: AnyBackend) -> None:
        self._turns, self._summaries = turns, summaries

    def __repr__(self) -> str:
        """Both of them."""
        return f"ByPurpose({self._turns!r}, summaries={self._summaries!r})"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Reach both, or raise a ForgeError that says why one of them cannot be reached."""
        async with AsyncExitStack() as opened:
            turns = await opened.enter_async_context(reached(self._turns).connect())
            summaries = await opened.enter_async_context(reached(self._summaries).connect())
            yield _with_summaries(turns, summaries)


def _with_summaries(turns: Connection, summaries: Connection) -> Connection:
    """That of the turns, whose requests for summaries go to the other."""

    def one(effect: Send) -> Connection:
        return summaries if effect.summarizer else turns

    async def send(effect: Send) -> Replied | Undelivered:
        return await one(effect).send(effect)

    async def stream(effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
        return await one(effect).told(on_chunk)(effect)

    other = replace(summaries.setup, falls_back=False, summaries=None)
    return replace(turns, setup=replace(turns.setup, summaries=other), send=send, stream=stream)
