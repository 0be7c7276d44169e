"""Several models behind one backend: by purpose, and a larger one where the first is not sure."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from forge.backends import reached
from forge.callbacks import OnChunk
from forge.connection import AnyBackend, Connection
from forge.errors import checked_options
from stages.effect import Replied, Send, Undelivered
from stages.state import MAIN

# A model for each purpose: one for the turns of a run, another for its summaries.


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
        async with reached(self._turns).connect() as turns, reached(self._summaries).connect() as summaries:
            yield routed(turns, summary=summaries)


# Cascade: a small model, and a larger one for the decisions that it is not sure of.


class Cascade:
    """Two backends as one: all is asked of `small`, and of `larger` what `WhenUnsure(then=AskLarger())` hands to it.

    Each is asked in its own protocol, mode and sampling. The context that histories are cut to is the small one's.
    """

    @checked_options
    def __init__(self, small: AnyBackend, larger: AnyBackend) -> None:
        self._small, self._larger = small, larger

    def __repr__(self) -> str:
        """Both of them."""
        return f"Cascade({self._small!r}, {self._larger!r})"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Reach both, or raise a ForgeError that says why one of them cannot be reached."""
        async with reached(self._small).connect() as small, reached(self._larger).connect() as larger:
            yield routed(small, larger=larger)


def routed(main: Connection, **others: Connection) -> Connection:
    """The connection of all: requests for a target go to the other of that name, all else to the main one.

    A refusal of tools by one of the others changes nothing for the main one.
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
