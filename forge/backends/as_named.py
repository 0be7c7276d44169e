"""A model as it was named: a server that has another one is refused, though it would answer under any name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forge.connection import Backend, Connection
from forge.errors import ForgeError


class AsNamed:
    """A backend that does not connect to a llama-server whose only model is another than the one that was asked for.

    Programs may call the model of a llama-server what they like. What a person names on the command line is meant.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __repr__(self) -> str:
        """The backend's own."""
        return repr(self._backend)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Reach the model. ForgeError if it is not there, or for the backend's own reasons."""
        async with self._backend.connect() as connection:
            endpoint = connection.endpoint
            if endpoint is not None and endpoint.instead:
                raise ForgeError(
                    f"the server has no model {endpoint.model!r}; its only one is {endpoint.instead!r}: "
                    "leave the name out, or give that one"
                )
            yield connection
