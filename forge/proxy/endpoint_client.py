"""The client of an endpoint: its requests over connections that are kept.

A small request and its answer cost a quarter of what they cost in aiohttp (docs/proxy.md). It knows as much of HTTP as
a server of models needs: no redirects, cookies, unpacking or pipelining. Answers are read by httptools, as uvicorn
reads requests.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from forge.connection import Endpoint
from forge.door.asgi import Headers
from forge.proxy.http_answer import BrokenAnswerError, HttpAnswer, UnansweredError
from forge.proxy.http_connection import HttpConnection
from forge.proxy.http_connector import Connector

_IDLE = 30.0
"""Seconds for which a connection is kept that nobody needs."""

_HEADS = 256
"""Heads that are kept: clients may send any headers."""

_NAME = {"user-agent": "forge-proxy"}
"""Some gateways refuse a client that has none."""

_USUAL = {"content-type": "application/json", "accept-encoding": "identity"}


class EndpointClient:
    """Asks an endpoint, with its headers and credential, or the client's own where it has none."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connector = Connector(server=endpoint.root, proxy=endpoint.proxy, tls=endpoint.tls)
        self._idle: deque[HttpConnection] = deque()
        self._heads: dict[tuple[str, str, Headers], bytes] = {}

    async def ask(
        self, method: str, url: str, key: str, body: bytes = b"", own: Headers = (), *, trace: Headers = ()
    ) -> "OpenRequest":
        """A request whose answer has begun, to be closed by the caller; `own` are headers instead of the endpoint's.

        `trace` are further ones, of this request alone.
        UnreachableError, ssl.SSLError, TimeoutError, BrokenAnswerError or UnansweredError where there is none.
        """
        request = b"%b%b%bcontent-length: %d\r\n\r\n%b" % (
            self._head(method, url, own),
            self._credential(key),
            b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in trace),
            len(body),
            body,
        )
        if kept := self._kept(key):
            try:
                return await self._asked(kept, request)
            except (BrokenAnswerError, UnansweredError):
                pass  # it was closed at the same moment, or what came is left of an earlier answer: once more
        connection = await self._connector.connect()
        connection.key = key
        return await self._asked(connection, request)

    async def _asked(self, connection: HttpConnection, request: bytes) -> "OpenRequest":
        answer = connection.ask(request, self._endpoint.timeout, self._endpoint.total)
        opened = OpenRequest(answer, connection, self._idle)
        try:
            await answer.begun()
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            self._idle.pop().close()

    def _kept(self, key: str) -> HttpConnection | None:
        """The connection that this caller used last, if there is one; those that nobody has needed for long are closed.

        No other caller gets it: an answer that the server sends once too often can come at any time, and looks like one
        to what was asked last. A new connection takes the place of another caller's, as servers may serve only so many.
        """
        before = asyncio.get_running_loop().time() - _IDLE
        while self._idle and self._idle[0].since < before:
            self._idle.popleft().close()
        while connection := next((each for each in reversed(self._idle) if each.key == key), None):
            self._idle.remove(connection)
            if connection.quiet:
                return connection
            connection.close()
        if self._idle:
            self._idle.popleft().close()
        return None

    def _head(self, method: str, url: str, own: Headers) -> bytes:
        """All of a head but the credential and the size, put together once: the URLs are few, and so are clients."""
        made = self._heads.get((method, url, own))
        if made is None:
            at = httpx.URL(url)
            through = self._endpoint.proxy and not self._connector.tunnelled
            target = str(at) if through else at.raw_path.decode()
            told = {"host": at.netloc.decode(), **_NAME, **self._endpoint.headers, **dict(own), **_USUAL}
            lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), ""]
            made = "\r\n".join(lines).encode("latin-1") + (self._connector.credentials() if through else b"")
            if len(self._heads) == _HEADS:
                self._heads.clear()
            self._heads[method, url, own] = made
        return made

    def _credential(self, key: str) -> bytes:
        """The header with the client's credential, where the endpoint has none of its own."""
        if not key or self._endpoint.has_key:
            return b""
        name = self._endpoint.key_header
        return f"{name}: {f'Bearer {key}' if name == 'authorization' else key}\r\n".encode("latin-1")


class OpenRequest:
    """A request that is under way. Closed before its answer is whole, it closes the connection: the server stops."""

    def __init__(self, answer: HttpAnswer, connection: HttpConnection, idle: deque[HttpConnection]) -> None:
        self.answer, self._connection, self._idle = answer, connection, idle

    def close(self) -> None:
        """Keep the connection for another request, or close it."""
        self.answer.stop()
        if self._connection.reusable:
            self._connection.rest()
            self._idle.append(self._connection)
        else:
            self._connection.close()

    async def __aenter__(self) -> HttpAnswer:
        """The answer."""
        return self.answer

    async def __aexit__(self, *_: object) -> None:
        """The request is over."""
        self.close()


@asynccontextmanager
async def endpoint_client(endpoint: Endpoint) -> AsyncIterator[EndpointClient]:
    """A client, closed at the end."""
    client = EndpointClient(endpoint)
    try:
        yield client
    finally:
        client.close()
