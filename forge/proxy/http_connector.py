"""The way to a server: straight or through a forward proxy, with TLS or without."""

import asyncio
import ssl
from base64 import b64encode
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from forge.errors import ForgeError
from forge.proxy.http_connection import HttpConnection

_CONNECT_TIMEOUT = 10.0
"""Seconds."""

_PORTS = {"http": 80, "https": 443}


class UnreachableError(Exception):
    """There is no connection to the server; the message says why."""


class Connector(Struct, frozen=True, kw_only=True):
    """How a server is reached. `proxy` is a forward proxy's address, empty for none.

    `tls` is what certificates are checked with, the server's and the proxy's, where either has one.
    """

    server: str
    proxy: str = ""
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        """ForgeError for a proxy of a kind that is not spoken here."""
        if self.proxy and urlsplit(self.proxy).scheme not in _PORTS:
            kind = urlsplit(self.proxy).scheme
            raise ForgeError(f"the forward proxy is a {kind} proxy; forge proxy goes through http and https proxies")

    @property
    def tunnelled(self) -> bool:
        """Whether a proxy only hands bytes on; without TLS it reads the requests, which then name the server."""
        return urlsplit(self.server).scheme == "https"

    def credentials(self) -> bytes:
        """The header with the user and password of the proxy's address; none where it has none."""
        at = urlsplit(self.proxy)
        if at.username is None:
            return b""
        pair = f"{unquote(at.username)}:{unquote(at.password or '')}".encode()
        return b"proxy-authorization: Basic " + b64encode(pair) + b"\r\n"

    async def connect(self) -> HttpConnection:
        """A connection. UnreachableError, or ssl.SSLError where it cannot be trusted."""
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                return await self._connected()
        except ssl.SSLError:
            raise
        except TimeoutError:
            raise UnreachableError("no connection was accepted in time") from None
        except OSError as error:
            raise UnreachableError(error.strerror or str(error)) from error

    async def _connected(self) -> HttpConnection:
        server = urlsplit(self.server)
        connection = await self._opened(urlsplit(self.proxy) if self.proxy else server)
        if not (self.proxy and self.tunnelled):
            return connection
        try:
            await self._tunnel(connection, server)
            await connection.secure(self.tls or ssl.create_default_context(), server.hostname or "")
        except BaseException:
            connection.close()
            raise
        return connection

    async def _opened(self, at: SplitResult) -> HttpConnection:
        loop = asyncio.get_running_loop()
        tls = (self.tls or True) if at.scheme == "https" else None
        connection = HttpConnection()
        port = at.port or _PORTS[at.scheme]
        connection.transport, _ = await loop.create_connection(lambda: connection, at.hostname or "", port, ssl=tls)
        return connection

    async def _tunnel(self, connection: HttpConnection, server: SplitResult) -> None:
        """Have the forward proxy hand on what follows."""
        host = f"[{server.hostname}]" if ":" in (server.hostname or "") else server.hostname
        target = f"{host}:{server.port or _PORTS[server.scheme]}".encode()
        request = b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (target, target, self.credentials())
        answer = connection.ask(request, _CONNECT_TIMEOUT, None)
        try:
            await answer.begun()
        finally:
            answer.stop()
        if answer.status != 200:
            raise UnreachableError(f"the forward proxy answered {answer.status}")
