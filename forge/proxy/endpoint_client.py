"""The HTTP client for an endpoint, with keep-alive connections.

A small request costs a quarter of what it costs in aiohttp (docs/proxy.md). The client supports only what model servers
need: no redirects, cookies, compression or pipelining. httptools parses the answers, as it parses uvicorn's requests.
"""

import asyncio
import select
import socket
import ssl
from base64 import b64encode
from collections import deque
from urllib.parse import SplitResult, unquote, urlsplit

import httpx
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct

from forge.connection import Endpoint
from forge.door.asgi import Headers
from forge.errors import ForgeError
from forge.interpreters.http import silent, tls_reason
from forge.proxy.upstream import TransportError
from stages.effect import Fault

# The answer to one HTTP/1.1 request, parsed by httptools and consumed in chunks.

HEAD_LIMIT = 64 * 1024
"""Maximum bytes without any of the body: a head, trailers, whatever else a server puts around chunks."""

HELD = 256 * 1024
"""Bytes of a body that may be buffered before reading is paused."""


class HttpAnswer:
    """An answer being received. `silence` is the maximum seconds without a byte, `total` the maximum in all.

    TransportError if it takes longer or is incomplete; `server` is named in it. Only one task may read it.
    """

    def __init__(self, reading: asyncio.ReadTransport, server: str, silence: float, total: float | None) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False
        self.reusable = False
        """Whether its connection can take another request."""
        self._begun = self._paused = False
        self._failed: TransportError | None = None
        self._chunks: deque[bytes] = deque()
        self._held = self._bare = 0
        self._waiter: asyncio.Future[None] | None = None
        self._reading, self._server, self._parser = reading, server, HttpResponseParser(self)
        self._loop = asyncio.get_running_loop()
        self._heard, self._silence = self._loop.time(), silence
        self._end = self._heard + total if total is not None else float("inf")
        self._timer = self._loop.call_later(min(silence, total or silence), self._look)

    async def begun(self) -> None:
        """Wait for the status and the headers."""
        while not self._begun:
            await self._more()

    async def chunk(self) -> bytes:
        """The next bytes of the body; empty at its end."""
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
        """The rest of the body; None if it has more than `limit` bytes."""
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
        """Receive data from the connection."""
        self._heard = self._loop.time()
        self._bare += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._break_off(f"not a valid HTTP answer: {error}")
        if self._bare > HEAD_LIMIT and not self.ended:
            self._break_off(f"{self._bare} bytes without any of the body")
        if self._held > HELD and not (self._paused or self.ended):
            self._paused = True
            self._reading.pause_reading()
        self._wake()

    def lost(self, error: Exception | None) -> None:
        """The connection was closed, which ends a body without a length."""
        if self._begun and error is None and not {"content-length", "transfer-encoding"} & self.headers.keys():
            self.ended = True
        elif not self.ended:
            unanswered = not self._begun and not self._bare
            self._break_off("closed without an answer" if unanswered else "closed in the middle of an answer")
        self._wake()

    def _break_off(self, why: str) -> None:
        self._fail(Fault(kind="interrupted", detail=f"the connection to {self._server} broke: {why}"[:500]))

    def _fail(self, fault: Fault) -> None:
        """End with a fault."""
        self.reusable = False
        self._failed = self._failed or TransportError(fault)
        self._wake()

    def on_message_begin(self) -> None:
        """A callback of httptools. Data after the answer was not requested, and is ignored."""
        self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; trailers are ignored."""
        if not self._begun:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is complete; one with status 1xx precedes the answer's own."""
        if not self.ended:
            self.status = self._parser.get_status_code()
            if not 100 <= self.status < 600:
                self._break_off(f"it answered {self.status}, which is not an HTTP status")
                raise ValueError(self.status)  # httptools then reads no further
            self._begun = self.status >= 200
        if not self._begun:
            self.headers.clear()

    def on_body(self, body: bytes) -> None:
        """Store bytes of the body."""
        if not self.ended:
            self._chunks.append(body)
            self._held += len(body)
            self._bare = 0

    def on_message_complete(self) -> None:
        """The end, unless the message had status 1xx."""
        self.reusable = self._begun and not self.ended and self._parser.should_keep_alive()
        self.ended = self._begun

    async def _more(self) -> None:
        """Wait for more data. Data received before a failure is read first."""
        if self._failed is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        if not self._chunks and self._failed is not None:
            raise self._failed

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """Fail if the answer takes too long; while reading is paused for a slow client, only the total counts."""
        # Set anew when it rings, and not for each chunk, of which a stream has thousands.
        now = self._loop.time()
        late = self._end if self._paused else min(self._end, self._heard + self._silence)
        if now >= late - 0.001:
            slow = Fault(kind="timeout", detail=f"{self._server} did not complete its answer in time")
            self._fail(slow if now >= self._end - 0.001 else silent(self._server, self._silence))
        else:
            self._timer = self._loop.call_later(min(late - now, self._silence), self._look)


# A connection to a server, for one request at a time.


class _HttpConnection(asyncio.Protocol):
    """A connection. `since` is the loop time at which its last answer ended; `key` is its caller's."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.transport: asyncio.Transport
        """Set by the code that makes the connection: asyncio passes the protocol a wider type."""
        self.open = True
        self.since, self.key = 0.0, ""
        self._answer: HttpAnswer | None = None

    def ask(self, request: bytes, silence: float, total: float | None) -> HttpAnswer:
        """Send a request, and return its answer, still to be received."""
        self._answer = HttpAnswer(self.transport, self._server, silence, total)
        self.transport.write(request)
        return self._answer

    @property
    def reusable(self) -> bool:
        """Whether it can take another request: the last one was completely sent and answered."""
        answered = self._answer is not None and self._answer.reusable
        return self.open and answered and not self.transport.get_write_buffer_size()

    @property
    def quiet(self) -> bool:
        """Whether it is open and no unrequested data has arrived, whether read by the loop or not."""
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
        """Close it immediately, so that the server stops working on the request."""
        self.open = False
        self.transport.abort()

    async def secure(self, tls: ssl.SSLContext, name: str) -> None:
        """Start TLS with the server of that name."""
        self._answer = None
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(self.transport, self, tls, server_hostname=name)
        if secured is None:
            raise ConnectionError("the connection was closed during the TLS handshake")
        self.transport = secured

    def data_received(self, data: bytes) -> None:
        """A callback of asyncio. After unrequested data, the connection cannot be reused."""
        if self._answer is None:
            self.open = False
        else:
            self._answer.feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        """A callback of asyncio."""
        self.open = False
        if self._answer is not None:
            self._answer.lost(error)


# Connecting to a server: directly or through a forward proxy, with or without TLS.

_CONNECT_TIMEOUT = 10.0
"""Seconds."""

_PORTS = {"http": 80, "https": 443}


class _Connector(Struct, frozen=True, kw_only=True):
    """How to connect to a server. `proxy` is a forward proxy's address, empty for none.

    `tls` verifies the certificates of the server and the proxy.
    """

    server: str
    proxy: str = ""
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        """ForgeError for an unsupported kind of forward proxy."""
        if self.proxy and urlsplit(self.proxy).scheme not in _PORTS:
            kind = urlsplit(self.proxy).scheme
            raise ForgeError(f"the forward proxy is a {kind} proxy; forge proxy supports only http and https proxies")

    @property
    def tunnelled(self) -> bool:
        """Whether a forward proxy only tunnels bytes. Without TLS it reads the requests, which then name the server."""
        return urlsplit(self.server).scheme == "https"

    def credentials(self) -> bytes:
        """The header with the user and password in the forward proxy's address; empty if it has none."""
        at = urlsplit(self.proxy)
        if at.username is None:
            return b""
        pair = f"{unquote(at.username)}:{unquote(at.password or '')}".encode()
        return b"proxy-authorization: Basic " + b64encode(pair) + b"\r\n"

    async def connect(self) -> _HttpConnection:
        """A new connection. TransportError if there is none, or if it cannot be trusted."""
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                return await self._connected()
        except ssl.SSLError as error:
            raise TransportError(
                Fault(kind="tls", detail=f"no TLS connection to {self.server}: {tls_reason(error)}")
            ) from error
        except TimeoutError:
            raise self._unreachable("the connection timed out") from None
        except socket.gaierror as error:
            raise self._unreachable("the host name cannot be resolved") from error
        except OSError as error:
            raise self._unreachable(f"{error.strerror or error}. Is the server running?") from error

    def _unreachable(self, why: str) -> TransportError:
        return TransportError(Fault(kind="unreachable", detail=f"cannot connect to {self.server}: {why}"))

    async def _connected(self) -> _HttpConnection:
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

    async def _opened(self, at: SplitResult) -> _HttpConnection:
        loop = asyncio.get_running_loop()
        tls = (self.tls or True) if at.scheme == "https" else None
        connection = _HttpConnection(self.server)
        port = at.port or _PORTS[at.scheme]
        connection.transport, _ = await loop.create_connection(lambda: connection, at.hostname or "", port, ssl=tls)
        return connection

    async def _tunnel(self, connection: _HttpConnection, server: SplitResult) -> None:
        """Ask the forward proxy for a tunnel."""
        host = f"[{server.hostname}]" if ":" in (server.hostname or "") else server.hostname
        target = f"{host}:{server.port or _PORTS[server.scheme]}".encode()
        request = b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (target, target, self.credentials())
        answer = connection.ask(request, _CONNECT_TIMEOUT, None)
        try:
            await answer.begun()
        finally:
            answer.stop()
        if answer.status != 200:
            raise self._unreachable(f"the forward proxy answered {answer.status}")


# The client: requests over kept connections.

_IDLE = 30.0
"""Seconds for which an unused connection is kept."""

_HEADS = 256
"""Maximum number of cached request heads: clients may send any headers."""

_NAME = {"user-agent": "forge-proxy"}
"""Some gateways refuse clients without a user agent."""

_USUAL = {"content-type": "application/json", "accept-encoding": "identity"}


class EndpointClient:
    """Sends requests to an endpoint, with its headers and its credential, or the client's if it has none."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connector = _Connector(server=endpoint.root, proxy=endpoint.proxy, tls=endpoint.tls)
        self._idle: deque[_HttpConnection] = deque()
        self._heads: dict[tuple[str, str, Headers], bytes] = {}

    async def ask(
        self, method: str, url: str, key: str, body: bytes = b"", own: Headers = (), *, trace: Headers = ()
    ) -> "OpenRequest":
        """A request whose answer has begun; the caller must close it. `own` are headers that override the endpoint's.

        `trace` are further headers for this request only. TransportError if there is no answer.
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
            except TransportError as error:
                # The server closed it at this moment, or sent the rest of an earlier answer: try a new one.
                if error.fault.kind != "interrupted":
                    raise
        connection = await self._connector.connect()
        connection.key = key
        return await self._asked(connection, request)

    async def _asked(self, connection: _HttpConnection, request: bytes) -> "OpenRequest":
        answer = connection.ask(request, self._endpoint.timeout, self._endpoint.total)
        opened = OpenRequest(answer, connection, self._idle)
        try:
            await answer.begun()
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _kept(self, key: str) -> _HttpConnection | None:
        """The connection that this caller used last, if any; connections that were idle for too long are closed.

        Callers never share a connection: a duplicate answer from the server may arrive at any time, and would look like
        the answer to the last request. A new connection replaces another caller's idle one, because servers may limit
        their number.
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
        """The head without the credential and the size, cached because there are few URLs and few kinds of clients."""
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
        """The header with the client's credential, if the endpoint has none of its own."""
        if not key or self._endpoint.has_key:
            return b""
        name = self._endpoint.key_header
        return f"{name}: {f'Bearer {key}' if name == 'authorization' else key}\r\n".encode("latin-1")


class OpenRequest:
    """A request in progress. Closing it before its answer is complete closes the connection, so the server stops."""

    def __init__(self, answer: HttpAnswer, connection: _HttpConnection, idle: deque[_HttpConnection]) -> None:
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
