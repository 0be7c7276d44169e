"""Several models behind one backend: by purpose, or a larger one if the first is not sure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from forge.backends import reached
from forge.callbacks import OnChunk
from forge.connection import AnyBackend, Connection
from forge.errors import checked_options
from stages.effect import Replied, Send, Undelivered
from stages.state import MAIN

# A model per purpose: one for the turns of a run, another for its summaries.


class ByPurpose:
    """Two backends as one: `summaries` for the workflow's `summarize`, `turns` for everything else.

    Each has its own protocol, mode and sampling. If a conversation does not fit the context of `summaries`, or a
    summary could not be used, the rest of the run is summarised by `turns`.
    """

    @checked_options
    def __init__(self, turns: AnyBackend, *, summaries: AnyBackend) -> None:
        self._turns, self._summaries = turns, summaries

    def __repr__(self) -> str:
        """Both backends."""
        return f"ByPurpose({self._turns!r}, summaries={self._summaries!r})"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Connect to both. ForgeError if one of them cannot be reached."""
        async with reached(self._turns).connect() as turns, reached(self._summaries).connect() as summaries:
            yield routed(turns, summary=summaries)


# Cascade: a small model, and a larger one for decisions that it is not sure of.


class Cascade:
    """Two backends as one: `larger` for what `WhenUnsure(then=AskLarger())` passes on, `small` for the rest.

    Each has its own protocol, mode and sampling. Histories are compacted to the context of `small`.
    """

    @checked_options
    def __init__(self, small: AnyBackend, larger: AnyBackend) -> None:
        self._small, self._larger = small, larger

    def __repr__(self) -> str:
        """Both backends."""
        return f"Cascade({self._small!r}, {self._larger!r})"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Connect to both. ForgeError if one of them cannot be reached."""
        async with reached(self._small).connect() as small, reached(self._larger).connect() as larger:
            yield routed(small, larger=larger)


def routed(main: Connection, **others: Connection) -> Connection:
    """One connection for all: requests for a target go to the connection of that name, others to `main`.

    If another connection refuses tools, `main` is not affected.
    """

    def one(effect: Send) -> tuple[Connection, Send]:
        other = others.get(effect.target)
        return (other, replace(effect, target=MAIN)) if other else (main, effect)

    async def send(effect: Send) -> Replied | Undelivered:
        connection, asked = one(effect)
        return await connection.send(asked)

    async def stream(effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
        connection, asked = one(effect)
        return await connection.told(on_chunk)(asked)

    known = {name: replace(other.setup, falls_back=False, targets={}) for name, other in others.items()}
    setup = replace(main.setup, targets={**main.setup.targets, **known})
    endpoints = {name: other.endpoint for name, other in others.items() if other.endpoint}
    return replace(main, setup=setup, send=send, stream=stream, endpoints={**main.endpoints, **endpoints})
