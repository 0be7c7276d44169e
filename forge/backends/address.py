"""Addresses of servers, and backends by the names that a command line takes."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from forge.connection import Backend, Connection
from forge.errors import ForgeError
from stages.repair.decoding import is_sound
from stages.wire.wires import OPENAI, WIRES

if TYPE_CHECKING:
    from forge.backends.profile import Profile  # which itself checks its address here


# A model as it was named: a server that is known not to have it is refused before anything is asked of it.


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


# Addresses of servers as people write them; the scheme may be left out for this machine.

_HERE = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?:/.*)?", re.IGNORECASE)
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_NEARLY = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{1,9}:?/{1,3}|https?:)?"
    r"(?P<host>[a-z0-9](?:[a-z0-9.-]{0,252}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])?"
    r"(?P<port>:?\d{2,5})?"
    r"(?P<path>/[^?#]{0,200})?",
    re.IGNORECASE,
)
"""What an address looks like that somebody has misspelt, bounded in all its parts."""


def is_address(text: str) -> bool:
    """Whether it says where a server is. Elsewhere than on this machine the scheme must be written: keys go there."""
    return bool(_SCHEME.match(text) or _HERE.fullmatch(text))


def spelt_out(text: str) -> str:
    """The address with its scheme, where it is one of this machine; any other text as it is."""
    return f"http://{text}" if _HERE.fullmatch(text) else text


def suggested(text: str) -> str:
    """` Did you mean http://…?`, for what is nearly an address; empty for what is not, and for what may hold a key.

    For a port out of range, what a port may be.
    """
    written = text.strip()
    found = _NEARLY.fullmatch(f":{written}" if written.isdigit() else written)
    if found is None:
        return ""
    scheme, host, port, path = (found[part] or "" for part in ("scheme", "host", "port", "path"))
    if not (scheme or port or (path and "." in host)) or not (host or port):
        return ""
    if port and not 0 < int(port.lstrip(":")) < 1 << 16:
        return " A port is a number from 1 to 65535."
    # What a server listens on is no address to connect to; and a port alone is one of this machine.
    where = "127.0.0.1" if host in {"", "0.0.0.0"} else host  # noqa: S104
    number = f":{port.lstrip(':')}" if port else ""
    secure = "https" if scheme.lower().startswith(("https", "wss")) else "http"
    return f" Did you mean {secure}://{where}{number}{path}?"


def base_url(url: str, profile: "Profile | None") -> str:
    """The address that the wire's path is appended to: a bare host gets the protocol's own `/v1`, where it has one.

    ForgeError for what is no address, without showing what may be a password in it.
    """
    given = spelt_out(url or (profile.url if profile else ""))
    parts = address_parts(given)
    protocol = WIRES[profile.wire] if profile else OPENAI
    trimmed = given.rstrip("/").removesuffix(protocol.path)
    return trimmed if parts.path.strip("/") or protocol.at_root else f"{trimmed}/v1"


def address_parts(given: str) -> SplitResult:
    """The parts of a server's address. ForgeError for what is none, without showing what may be a password in it."""
    try:
        parts = urlsplit(given)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and is_sound(given)
    except ValueError:  # brackets that don't close, a port that is no number or too large
        right = False
        parts = urlsplit("")
    if "@" in given:
        raise ForgeError("the server's address holds a user name or a password; pass api_key or headers instead")
    if not right:
        raise ForgeError(f"{given!r} is no server's address; write it like http://127.0.0.1:8080.{suggested(given)}")
    if parts.query or parts.fragment:
        raise ForgeError("the server's address has a part after '?' or '#'; leave it out, and pass keys as headers")
    return parts


def is_here(url: str) -> bool:
    """Whether the address is this machine's own, so that a proxy named in the environment does not lead there."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")
