"""A server as the proxy asks it: aiohttp to its address, bodies as they come."""

import io
import ssl
import time
from collections.abc import AsyncGenerator, Mapping

import aiohttp
from aiohttp import ClientResponse, ClientSession
from multidict import CIMultiDict
from yarl import URL

from forge.backends.credentials import HEADERS
from forge.connection import Endpoint
from forge.interpreters.http_faults import retry_after
from forge.interpreters.http_streams import STREAM_LIMIT
from forge.proxy.events import EVENT_LIMIT, EventCutter, TooLongError
from forge.proxy.options import BODY_LIMIT
from forge.proxy.upstream import Heard, Post, Refusal, Whole
from stages.effect import Fault
from stages.wire.deltas import Ended, reply_pieces
from stages.wire.faults import BODY_KEPT, cut_body
from stages.wire.wires import Wire

_LARGE = 1 << 20
"""Bytes from which a body is sent in parts."""

RAISED = (aiohttp.ClientError, OSError, TimeoutError)
"""What a request may raise."""


class Served:
    """A server of that protocol. `verbatim`: events are kept as they came, for a client of the same protocol."""

    def __init__(self, session: ClientSession, endpoint: Endpoint, wire: Wire) -> None:
        self._session, self._endpoint, self._wire = session, endpoint, wire
        self._url = URL(endpoint.base + wire.path)
        # Made once: aiohttp would turn a dict into one of these for each request.
        usual = {"content-type": "application/json", "accept-encoding": "identity"}
        self._headers = CIMultiDict({**endpoint.headers, **usual})

    async def whole(self, post: Post) -> Whole | Refusal:
        """The whole answer."""
        try:
            async with await self._posted(post, post.body or post.request.body) as response:
                raw = await _read(response, BODY_LIMIT)
        except RAISED as error:
            return Refusal(_fault_of(error, str(self._url)))
        if raw is None:
            return Refusal(Fault(kind="too_large", detail=f"{self._url} sent more than {BODY_LIMIT} bytes"))
        if response.status >= 300:
            return self._refused(response, raw)
        reply = self._wire.decode(raw)
        return Refusal(reply, raw) if isinstance(reply, Fault) else Whole(reply, raw)

    async def stream(self, post: Post) -> AsyncGenerator[Heard | Refusal]:
        """The answer's events as they come; closing the iterator closes the connection, and so frees the slot."""
        try:
            response = await self._posted(post, post.body or self._wire.streamed(post.request))
            async with response:
                if response.status >= 300:
                    yield self._refused(response, await _read(response, BODY_LIMIT) or b"")
                    return
                events = self._whole(response) if _is_whole(response) else self._events(response)
                async for heard in events:
                    yield heard
        except TooLongError:
            yield Refusal(Fault(kind="too_large", detail=f"an event has more than {EVENT_LIMIT} bytes"))
        except RAISED as error:
            yield Refusal(_fault_of(error, str(self._url)))

    async def _whole(self, response: ClientResponse) -> AsyncGenerator[Heard | Refusal]:
        """The pieces of a reply that a server gives in one go although it was asked for a stream."""
        raw = await _read(response, BODY_LIMIT) or b""
        reply = self._wire.decode(raw)
        if isinstance(reply, Fault):
            yield Refusal(reply, raw)
            return
        for piece in reply_pieces(reply):
            yield Heard(b"", (piece,))

    async def _events(self, response: ClientResponse) -> AsyncGenerator[Heard | Refusal]:
        decoder, cutter, size, ended = self._wire.stream, EventCutter(), 0, False
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > STREAM_LIMIT:
                yield Refusal(Fault(kind="too_large", detail=f"the stream has more than {STREAM_LIMIT} bytes"))
                return
            for raw in cutter.cut(chunk):
                decoder, pieces = decoder.advance(raw)
                ended = ended or any(isinstance(piece, Ended) for piece in pieces)
                yield Heard(raw, pieces)
        rest = cutter.rest()
        decoder, pieces = decoder.advance(rest)
        yield Heard(rest, (*pieces, *(() if ended else decoder.finish())))

    async def _posted(self, post: Post, body: bytes) -> ClientResponse:
        headers = self._headers
        if post.key and not self._endpoint.has_key:
            name = self._endpoint.key_header
            headers = headers.copy()
            headers[name] = f"Bearer {post.key}" if name == "authorization" else post.key
        try:
            return await self._session.post(self._url, data=_data(body), headers=headers, allow_redirects=False)
        except aiohttp.ServerDisconnectedError:
            # A connection that was kept, and that the server closed at the same moment: nothing of it was read.
            return await self._session.post(self._url, data=_data(body), headers=headers, allow_redirects=False)

    def _refused(self, response: ClientResponse, raw: bytes) -> Refusal:
        hidden = self._endpoint.hidden
        shown = hidden.without_bytes(raw)
        body = cut_body(hidden.cut_after(raw, BODY_KEPT) if hidden else raw)
        fault = Fault(
            kind="status",
            detail=body or f"{self._url} answered {response.status}",
            status=response.status,
            body=body,
            retry_after=retry_after(response.headers, time.time()),
            retriable={"true": True, "false": False}.get(response.headers.get("x-should-retry", "")),
        )
        return Refusal(fault, shown)


def _data(body: bytes) -> bytes | io.BytesIO:
    """The body as aiohttp wants it: a large one in parts, as it would hold up the loop."""
    return body if len(body) < _LARGE else io.BytesIO(body)


def _is_whole(response: ClientResponse) -> bool:
    return response.headers.get("content-type", "").startswith("application/json")


async def _read(response: ClientResponse, limit: int) -> bytes | None:
    """The body; None where it has more bytes than that."""
    if 0 < (response.content_length or 0) <= limit:
        return await response.read()
    chunks, size = list[bytes](), 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _fault_of(error: BaseException, where: str) -> Fault:
    """The fault that an exception of aiohttp stands for."""
    match error:
        case TimeoutError():
            return Fault(kind="timeout", detail=f"{where} did not answer in time")
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            return Fault(kind="tls", detail=f"no TLS connection to {where}")
        case aiohttp.ClientConnectorError():
            return Fault(kind="unreachable", detail=f"cannot connect to {where}. Is the server running?")
        case _:
            return Fault(kind="interrupted", detail=f"the connection to {where} broke: {type(error).__name__}")


def session(endpoint: Endpoint) -> ClientSession:
    """A client without cookies or a pool's limit: the proxy has its own queue."""
    return ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=endpoint.total, sock_connect=10.0, sock_read=endpoint.timeout),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=("user-agent", "accept"),
    )


def credential_of(headers: Mapping[bytes, bytes]) -> str:
    """The client's credential: the word after Bearer, or that of another header that carries one."""
    for name in sorted(HEADERS):
        value = headers.get(name.encode(), b"").decode("latin-1").strip()
        if value:
            return value.rpartition(" ")[2]
    return ""
