"""The client of an endpoint: its requests over connections that are kept.

A small request and its answer cost a quarter of what they cost in aiohttp (docs/proxy.md). It knows as much of HTTP as
a server of models needs: no redirects, cookies, unpacking or pipelining. Answers are read by httptools, as uvicorn
reads requests.
"""

import asyncio
import select
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import SplitResult, unquote, urlsplit

import httpx
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from forge.connection import Endpoint
from forge.door.asgi import Headers
from forge.errors import ForgeError

# The answer to one HTTP/1.1 request: what httptools reads of it, taken in chunks as they come.

HEAD_LIMIT = 64 * 1024
"""Bytes without any of the body: a head, trailers, what else a server may put around chunks."""

HELD = 256 * 1024
"""Bytes of a body that may wait to be taken, before no more is read."""


class BrokenAnswerError(Exception):
    """What came is no HTTP answer, or the connection was lost in its middle."""


class UnansweredError(Exception):
    """The connection was closed before a byte of the answer came."""


class Pausable(Protocol):
    """The part of a transport that an answer needs: reading paused and resumed."""

    def pause_reading(self) -> None:
        """Pause reading."""

    def resume_reading(self) -> None:
        """Resume reading."""


class HttpAnswer:
    """An answer that is coming. `silence` and `total` are the seconds without a byte and in all that it may take.

    TimeoutError when it takes longer, BrokenAnswerError and UnansweredError where it does not come whole. One task
    takes it.
    """

    def __init__(self, reading: Pausable, silence: float, total: float | None) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self.reusable = False
        """Whether its connection can take another request."""
        self._begun = self._paused = False
        self._failed: Exception | None = None
        self._chunks: deque[bytes] = deque()
        self._held = self._bare = 0
        self._waiter: asyncio.Future[None] | None = None
        self._reading, self._parser = reading, HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._heard, self._silence = self._loop.time(), silence
        self._end = self._heard + total if total is not None else float("inf")
        self._timer = self._loop.call_later(min(silence, total or silence), self._look)

    async def begun(self) -> None:
        """Wait for the status and the headers."""
        while not self._begun:
            await self._more()

    async def chunk(self) -> bytes:
        """The next bytes of the body; none at its end."""
        while not self._chunks:
            if self.ended:
                return b""
            await self._more()
        found = b"".join(self._chunks) if len(self._chunks) > 1 else self._chunks[0]
        self._chunks.clear()
        self._held = 0
        if self._paused:
            self._paused, self._heard = False, self._loop.time()
            self._reading.resume_reading()
        return found

    async def read(self, limit: int) -> bytes | None:
        """The rest of the body; None where it has more bytes than that."""
        found, size = list[bytes](), 0
        while chunk := await self.chunk():
            size += len(chunk)
            if size > limit:
                return None
            found.append(chunk)
        return b"".join(found)

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def feed(self, data: bytes) -> None:
        """What the connection brings."""
        self._heard = self._loop.time()
        self._bare += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.fail(BrokenAnswerError(f"no HTTP answer: {error}"))
        if self._bare > HEAD_LIMIT and not self.ended:
            self.fail(BrokenAnswerError(f"no part of a body in {self._bare} bytes"))
        if self._held > HELD and not (self._paused or self.ended):
            self._paused = True
            self._reading.pause_reading()
        self._wake()

    def lost(self, error: Exception | None) -> None:
        """The connection was closed, which ends a body without a length."""
        if self._begun and error is None and not {"content-length", "transfer-encoding"} & self.headers.keys():
            self.ended = True
        elif not self.ended:
            nothing = not self._begun and not self._bare
            self.fail(UnansweredError() if nothing else BrokenAnswerError("closed in the middle of an answer"))
        self._wake()

    def fail(self, error: Exception) -> None:
        """No more will come."""
        self.reusable = False
        self._failed = self._failed or error
        self._wake()

    def on_message_begin(self) -> None:
        """A callback of httptools. What comes after the answer was not asked for, and is not read."""
        self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is of no use."""
        if not self._begun:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole; one of 1xx comes before that of the answer."""
        if not self.ended:
            self.status = self._parser.get_status_code()
            if not 100 <= self.status < 600:
                error = BrokenAnswerError(f"it answered {self.status}, which is no status of HTTP")
                self.fail(error)
                raise error  # httptools then reads no further
            self._begun = self.status >= 200
        if not self._begun:
            self.headers.clear()

    def on_body(self, body: bytes) -> None:
        """Bytes of the body."""
        if not self.ended:
            self._chunks.append(body)
            self._held += len(body)
            self._bare = 0

    def on_message_complete(self) -> None:
        """The end, unless it was one of 1xx."""
        self.reusable = self._begun and not self.ended and self._parser.should_keep_alive()
        self.ended = self._begun

    async def _more(self) -> None:
        """Wait until something has come. What has come before a failure is taken first."""
        if self._failed is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if not self._chunks:
            self._raise_failed()

    def _raise_failed(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """Fail if it takes too long; while a slow client has reading paused, only the total counts."""
        now = self._loop.time()
        late = self._end if self._paused else min(self._end, self._heard + self._silence)
        if now >= late - 0.001:
            self.fail(TimeoutError())
        else:
            self._timer = self._loop.call_later(min(late - now, self._silence), self._look)


# A connection to a server, for one request at a time.


class HttpConnection(asyncio.Protocol):
    """The connection. `since` is when its last answer ended, by the clock of the loop; `key` is its caller's."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        """Set by whoever has made the connection: asyncio tells a protocol of a wider type."""
        self.open = True
        self.since, self.key = 0.0, ""
        self._answer: HttpAnswer | None = None

    def ask(self, request: bytes, silence: float, total: float | None) -> HttpAnswer:
        """Send a request; its answer is coming."""
        self._answer = HttpAnswer(self.transport, silence, total)
        self.transport.write(request)
        return self._answer

    @property
    def reusable(self) -> bool:
        """Whether it can take another request: the last was sent whole and answered whole."""
        answered = self._answer is not None and self._answer.reusable
        return self.open and answered and not self.transport.get_write_buffer_size()

    @property
    def quiet(self) -> bool:
        """Whether it is open and nothing has come that no request asked for, read by the loop or not yet."""
        if not self.open:
            return False
        descriptor = self.transport.get_extra_info("socket").fileno()
        if not hasattr(select, "poll"):  # Windows, whose select takes descriptors of any number
            return not select.select([descriptor], [], [], 0)[0]
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return not poll.poll(0)

    def rest(self) -> None:
        """Wait for the next request."""
        self._answer, self.since = None, asyncio.get_running_loop().time()

    def close(self) -> None:
        """Close it at once: the server sees that nobody waits for more."""
        self.open = False
        self.transport.abort()

    async def secure(self, tls: ssl.SSLContext, name: str) -> None:
        """Speak TLS from now on, with the server of that name."""
        self._answer = None
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(self.transport, self, tls, server_hostname=name)
        if secured is None:
            raise ConnectionError("the connection was closed while TLS began")
        self.transport = secured

    def data_received(self, data: bytes) -> None:
        """A callback of asyncio's. After bytes that no request asked for, the connection cannot be used again."""
        if self._answer is None:
            self.open = False
        else:
            self._answer.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        """A callback of asyncio's."""
        self.open = False
        if self._answer is not None:
            self._answer.lost(error)


# The way to a server: straight or through a forward proxy, with TLS or without.

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


# The client of an endpoint: its requests over connections that are kept.

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
