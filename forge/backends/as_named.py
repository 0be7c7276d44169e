"""A model as it was named: a server that is known not to have it is refused before anything is asked of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forge.connection import Backend, Connection
from forge.errors import ForgeError


class AsNamed:
    """A backend that does not connect to a llama-server or vLLM without the model that was asked for.

    A llama-server answers under any name, and programs may call its model what they like. What a person names on the
    command line is meant.
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
                    f"the server has no model {endpoint.model!r}; it has {endpoint.instead}: "
                    "leave the name out, or give one that it has"
                )
            yield connection
