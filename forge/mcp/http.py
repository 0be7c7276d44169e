"""The HTTP transport: answers are bounded while they are read; a lost connection costs a call, not the session."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import TracebackType

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED

from forge.mcp.faults import UNREACHABLE, UNREADABLE
from forge.mcp.servers import Http

_CONNECT = 10.0
"""Seconds to connect. How long an answer may take is the call's own limit."""


class HttpTransport:
    """The streams of a session with the server at an address."""

    open = True
    """Whether the server may still send something: each request asks anew."""

    def __init__(self, server: Http) -> None:
        self._server = server
        self._connections = _BoundedConnections(server.message_limit)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> TransportStreams:
        """Make the streams; the first message connects."""
        server = self._server
        headers = {**server.headers, "accept-encoding": "identity"}
        timeout = httpx2.Timeout(None, connect=_CONNECT)
        client = httpx2.AsyncClient(transport=self._connections, headers=headers, timeout=timeout)
        await self._stack.enter_async_context(client)
        streams = streamable_http_client(server.url, http_client=client, max_sse_event_size=server.message_limit)
        return await self._stack.enter_async_context(streams)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End the session with the server, and close the connections."""
        return await self._stack.__aexit__(kind, error, trace)

    async def last_words(self) -> str:
        """The last status of the server's that is an error, such as `HTTP 401`."""
        return self._connections.said


class _BoundedConnections(httpx2.AsyncBaseTransport):
    """HTTP/1.1, with answers of at most `limit` bytes, but for streams: of these the SDK bounds each event."""

    def __init__(self, limit: int) -> None:
        self._plain = httpx2.AsyncHTTPTransport(trust_env=False)
        self._limit = limit
        self.said = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer; where there is none, an error in its place: an exception would end the whole session."""
        try:
            answer = await self._plain.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            return _instead(request, UNREACHABLE, str(error) or "it does not answer")
        except httpx2.TransportError as error:
            return _instead(request, CONNECTION_CLOSED, str(error) or type(error).__name__)
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()  # a few bytes of it may stand for gigabytes
            return _instead(request, UNREADABLE, "what is compressed, which was not asked for")
        if answer.status_code >= 400:
            self.said = f"HTTP {answer.status_code}"
        if isinstance(answer.stream, httpx2.AsyncByteStream) and not _is_stream(answer):
            answer.stream = _Bounded(answer.stream, self._limit)
        return answer

    async def aclose(self) -> None:
        """Close its connections."""
        await self._plain.aclose()


def _instead(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    """An answer with that error, which the SDK gives the request in question."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(502, json=error, request=request)


def _is_stream(answer: httpx2.Response) -> bool:
    return str(answer.headers.get("content-type", "")).lower().startswith("text/event-stream")


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, up to a limit; StreamError beyond it, and where the connection breaks."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._left = limit
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._left -= len(chunk)
                if self._left < 0:
                    raise httpx2.StreamError(f"it is longer than {self._limit:,} bytes (message_limit)")
                yield chunk
        except httpx2.TransportError as error:
            raise httpx2.StreamError(str(error) or type(error).__name__) from error

    async def aclose(self) -> None:
        await self._stream.aclose()
