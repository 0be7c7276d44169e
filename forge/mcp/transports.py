"""Transports to MCP servers: a program over stdio, an address over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, suppress
from types import TracebackType

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types import jsonrpc_message_adapter as messages

from forge.mcp.protocol import UNREACHABLE, UNREADABLE_ANSWER, Http, Stdio
from forge.mcp.streams import LineSplitter, TooLong, answered_request
from forge.processes import GRACE, end_group, exit_code

# A stdio server as a child process: its standard error is kept for error messages, and it is always stopped.

_CHUNK = 1 << 16
_TAIL = 600
"""Bytes to keep from the end of its standard error."""

_LINES = 3
"""Lines of these to show in an error."""

_SHOWN = 200
"""Characters to show of a line that is not a message."""


class StdioTransport:
    """The streams of a session with a program, started on entering and always stopped on leaving.

    Messages are lines, bounded while they are read.
    """

    def __init__(self, server: Stdio) -> None:
        self._server = server
        self._process: asyncio.subprocess.Process | None = None
        self._code: int | None = None
        self._stopping = False
        self._said = bytearray()
        self._reading: asyncio.Task[None] | None = None
        self._work: tuple[asyncio.Task[None], ...] = ()
        self._asked = set[int | str]()
        self._odd = ""

    @property
    def open(self) -> bool:
        """Whether the server may still send something."""
        return self._reading is not None and not self._reading.done()

    async def __aenter__(self) -> TransportStreams:
        """Start the program. OSError or ValueError if it cannot be started."""
        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(
            *self._server.command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**get_default_environment(), **self._server.env},
            cwd=self._server.cwd,
            start_new_session=True,  # Ctrl-C in a terminal goes to forge, which then stops the server
        )
        to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception]()
        to_server, from_session = anyio.create_memory_object_stream[SessionMessage]()
        self._reading = asyncio.create_task(_until_closed(self._read(process, to_session)))
        writing = asyncio.create_task(_until_closed(self._write(process, from_session)))
        self._work = (self._reading, writing, asyncio.create_task(self._listen(process)))
        return from_server, to_server

    async def __aexit__(self, *_: object) -> None:
        """Close the program's input and wait for it to exit; then end it and everything that it started."""
        process, self._stopping = self._process, True
        if process is not None and self._code is None:
            try:
                if process.stdin is not None:
                    process.stdin.close()
                await exit_code(process, GRACE)
            finally:
                await end_group(process)
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    async def last_words(self) -> str:
        """The exit code if it exited by itself, and its last output besides messages."""
        code = "" if self._code is None else f"it ended with exit code {self._code}"
        odd = f"it wrote what is no message: {self._odd!r}" if self._odd else ""
        last = bytes(self._said).decode(errors="replace").strip().splitlines()[-_LINES:]
        said = " / ".join(filter(None, map(str.strip, last)))
        return "; ".join(filter(None, (code, odd, said and f"it said last: {said}")))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        while process.stderr is not None and (chunk := await process.stderr.read(_CHUNK)):
            self._said += chunk
            del self._said[:-_TAIL]

    async def _read(
        self, process: asyncio.subprocess.Process, to_session: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        lines = LineSplitter(self._server.message_limit)
        async with to_session:
            while process.stdout is not None and (chunk := await process.stdout.read(_CHUNK)):
                for line in lines.feed(chunk):
                    for message in self._messages(line):
                        await to_session.send(SessionMessage(message))
            if not self._stopping and (code := await exit_code(process, GRACE)) is not None:
                self._code = code
                await end_group(process)  # now, because its process group's number may be reused later

    def _messages(self, line: bytes | TooLong) -> list[JSONRPCMessage]:
        """The message in the line; if it cannot be read, an error for each call that it may answer."""
        if isinstance(line, TooLong):
            limit = f"at most {self._server.message_limit:,} are read (message_limit)"
            return self._unreadable(line.start, line.end, f"a message of {line.size:,} bytes, and {limit}")
        try:
            message = messages.validate_json(line, by_name=False)
        except ValueError:
            self._odd = line[:_SHOWN].decode(errors="replace").strip()
            # Some servers log to standard output; such a line answers nothing.
            return self._unreadable(line, line, "what is no message of the protocol") if self._odd[:1] == "{" else []
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._asked.discard(message.id)
        return [message]

    def _unreadable(self, start: bytes, end: bytes, what: str) -> list[JSONRPCMessage]:
        # If it cannot be told which call is answered, all of them fail: the one would otherwise wait for its timeout.
        known = answered_request(start, end)
        concerned = {*self._asked} if known is None else self._asked & {known}
        self._asked -= concerned
        error = ErrorData(code=UNREADABLE_ANSWER, message=what)
        return [JSONRPCError(jsonrpc="2.0", id=one, error=error) for one in concerned]

    async def _write(
        self, process: asyncio.subprocess.Process, from_session: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        async with from_session:
            async for item in from_session:
                match item.message:
                    case JSONRPCRequest(id=number):
                        self._asked.add(number)
                    case JSONRPCNotification(params={"requestId": int() | str() as cancelled}):
                        self._asked.discard(cancelled)
                    case _:
                        pass
                if process.stdin is not None:
                    written = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(written.encode() + b"\n")
                    await process.stdin.drain()


async def _until_closed(work: Coroutine[None, None, None]) -> None:
    """Do the work until either end of its streams is closed."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        await work


# The HTTP transport: answers are bounded while they are read; a lost connection fails a call, not the session.

_CONNECT = 10.0
"""Seconds to connect. Answers are limited by the call's own timeout."""


class HttpTransport:
    """The streams of a session with a server at an address."""

    open = True
    """Always open, because each request connects anew."""

    def __init__(self, server: Http) -> None:
        self._server = server
        self._connections = _BoundedConnections(server.message_limit)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> TransportStreams:
        """Create the streams; the first message connects."""
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
        """End the session and close the connections."""
        return await self._stack.__aexit__(kind, error, trace)

    async def last_words(self) -> str:
        """The server's last error status, such as `HTTP 401`."""
        return self._connections.said


class _BoundedConnections(httpx2.AsyncBaseTransport):
    """HTTP/1.1 with answers of at most `limit` bytes; in event streams, the SDK bounds each event."""

    def __init__(self, limit: int) -> None:
        self._plain = httpx2.AsyncHTTPTransport(trust_env=False)
        self._limit = limit
        self.said = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer; failures become an error answer, because an exception would end the whole session."""
        try:
            answer = await self._plain.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            return _instead(request, UNREACHABLE, str(error) or "it does not answer")
        except httpx2.TransportError as error:
            return _instead(request, CONNECTION_CLOSED, str(error) or type(error).__name__)
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()  # a few compressed bytes may stand for gigabytes
            return _instead(request, UNREADABLE_ANSWER, "what is compressed, which was not asked for")
        if answer.status_code >= 400:
            self.said = f"HTTP {answer.status_code}"
        if isinstance(answer.stream, httpx2.AsyncByteStream) and not str(
            answer.headers.get("content-type", "")
        ).lower().startswith("text/event-stream"):
            answer.stream = _Bounded(answer.stream, self._limit)
        return answer

    async def aclose(self) -> None:
        """Close the connections."""
        await self._plain.aclose()


def _instead(request: httpx2.Request, code: int, message: str) -> httpx2.Response:
    """An answer with that error, which the SDK passes to the request."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(502, json=error, request=request)


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer up to a limit; StreamError beyond it, and for a broken connection."""

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
