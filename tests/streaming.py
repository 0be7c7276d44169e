"""A real server on a port of this machine that streams what a test says, request by request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from stages.effect import RawCall, Reply, Usage
from tests.property import servers

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What is done about one request; the connection is closed where the script closes it."""

ANSWER = Reply(text="hello there", reasoning="let me see", usage=Usage(prompt=12, completion=3, cached=5))
CALL = Reply(calls=(RawCall(id="c1", name="look", arguments='{"what":"a"}'),), finish="tool_calls")


def chunked(*parts: bytes, end: bool = True) -> bytes:
    """A body in HTTP's chunks, one a part; `end`: with the chunk that says it is whole."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part)
    return chunks + (b"0\r\n\r\n" if end else b"")


def head(kind: str = "text/event-stream", *, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def said(reply: Reply) -> bytes:
    """The reply as a stream of chat completions, in parts of three characters."""
    return servers.openai_stream(reply, lambda text: [text[n : n + 3] for n in range(0, len(text), 3)])


def sends(*parts: bytes, close: bool = False) -> Script:
    """The script that sends these bytes."""

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if close:
            writer.close()

    return script


def whole(reply: Reply) -> Script:
    """The script of a stream that goes well."""
    return sends(head(), chunked(said(reply)))


class Streams:
    """The server at `url`. `bodies` are what it was sent, `connections` counts those that were made."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self.connections = 0
        self.handlers: set[asyncio.Task[None]] = set()

    async def serve(
        self, scripts: tuple[Script, ...], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection, for as many requests as come over it."""
        self.connections += 1
        if task := asyncio.current_task():
            self.handlers.add(task)
        try:
            while not writer.is_closing():
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                if asked.startswith(b"get"):
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
                    continue
                length = asked.partition(b"content-length:")[2].partition(b"\r\n")[0]
                self.bodies.append(await reader.readexactly(int(length or b"0")))
                await scripts[min(len(self.bodies), len(scripts)) - 1](reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()


@asynccontextmanager
async def streaming(*scripts: Script) -> AsyncIterator[Streams]:
    """A server that follows script number n for request number n, and the last one for all that come later."""
    server = Streams()
    async with await asyncio.start_server(partial(server.serve, scripts), "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield server
        if server.handlers:  # the clients are gone by now; their handlers are about to notice
            await asyncio.wait(server.handlers)
