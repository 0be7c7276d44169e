"""Server addresses as people write them, and a check of the model name given on the command line."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import SplitResult, urlsplit

from forge.connection import Backend, Connection
from forge.errors import ForgeError
from stages.decoding import is_sound

# The model named by the user: refuse a server that is known not to have it, before sending any request.


class AsNamed:
    """A backend that refuses a llama-server or vLLM without the requested model.

    A llama-server answers to any model name, and programs may use any. A name on the command line is meant literally.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __repr__(self) -> str:
        """The repr of the wrapped backend."""
        return repr(self._backend)

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Connect to the model. ForgeError if the server does not have it; otherwise raises as the backend does."""
        async with self._backend.connect() as connection:
            endpoint = connection.endpoint
            if endpoint is not None and endpoint.instead:
                raise ForgeError(
                    f"the server has no model {endpoint.model!r}; it has {endpoint.instead}: "
                    "leave the name out, or give one that it has"
                )
            yield connection


# Addresses as people write them; the scheme is optional for this machine.

_HERE = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?:/.*)?", re.IGNORECASE)
_SCHEME = re.compile(r"https?://", re.IGNORECASE)


def is_address(text: str) -> bool:
    """Whether the text is an address. Other machines need an explicit scheme, because keys are sent there."""
    return bool(_SCHEME.match(text) or _HERE.fullmatch(text))


def spelt_out(text: str) -> str:
    """The address with its scheme if it is one of this machine; any other text unchanged."""
    return f"http://{text}" if _HERE.fullmatch(text) else text


def address_parts(given: str) -> SplitResult:
    """The parts of a server's address. ForgeError for an invalid one; the message never shows a possible password."""
    try:
        parts = urlsplit(given)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and is_sound(given)
    except ValueError:  # unclosed brackets, or a port that is not a valid number
        right = False
        parts = urlsplit("")
    if "@" in given:
        raise ForgeError("the server's address holds a user name or a password; pass api_key or headers instead")
    if not right:
        raise ForgeError(f"{given!r} is not a server's address; write it like http://127.0.0.1:8080")
    if parts.query or parts.fragment:
        raise ForgeError("the server's address has a part after '?' or '#'; leave it out, and pass keys as headers")
    return parts


def is_here(url: str) -> bool:
    """Whether the address is on this machine, so that proxies from the environment do not apply."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")
