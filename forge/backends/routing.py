"""Backends by name, and several behind one: by purpose, or a larger model if the first is not sure."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from forge.callbacks import OnChunk
from forge.connection import AnyBackend, Backend, Connection
from forge.errors import checked_options
from stages.effect import Replied, Send, Undelivered
from stages.state import MAIN


def reached(backend: AnyBackend) -> Backend:
    """The backend; for a name or an address, the backend that it stands for."""
    if not isinstance(backend, str):
        return backend
    # httpx and the rest take as long to import as all of forge; only a named backend needs them.
    from forge.backends.specification import named  # noqa: PLC0415

    return named(backend)


class Models:
    """Several backends as one: `main`, and others for what it should not do.

    `summaries` answers the workflow's `summarize`; if a conversation does not fit its context, or a summary could not
    be used, the rest of the run is summarised by `main`. `larger` answers what `WhenUnsure(then=AskLarger())` passes
    on. Each has its own protocol, mode and sampling. Histories are compacted to the context of `main`.
    """

    @checked_options
    def __init__(
        self, main: AnyBackend, *, summaries: AnyBackend | None = None, larger: AnyBackend | None = None
    ) -> None:
        self._main = main
        others = {"summary": summaries, "larger": larger}
        self._others = {name: backend for name, backend in others.items() if backend is not None}

    def __repr__(self) -> str:
        """All backends."""
        return f"Models({', '.join([repr(self._main), *(f'{name}={one!r}' for name, one in self._others.items())])})"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Connect to all. ForgeError if one of them cannot be reached."""
        async with AsyncExitStack() as opened:
            main = await opened.enter_async_context(reached(self._main).connect())
            others = {
                name: await opened.enter_async_context(reached(backend).connect())
                for name, backend in self._others.items()
            }
            yield _routed(main, **others)


def _routed(main: Connection, **others: Connection) -> Connection:
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
