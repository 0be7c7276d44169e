"""HTTP/1.1 as far as the bench needs it: heads, bodies of known length, chunks, connections that stay open."""

import asyncio
import re
import sys

LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
EVENT_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def whole(body: bytes) -> bytes:
    """An answer."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def chunk(data: bytes) -> bytes:
    """A chunk of a stream; of nothing, its end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Requests(asyncio.Protocol):
    """A connection that brings requests, one after the other; `answer` is called with each."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport
        self._buffer = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's is no subclass of asyncio's

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = LENGTH.search(self._buffer, 0, end + 2)
            stop = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < stop:
                return
            head, body = bytes(self._buffer[:end]), bytes(self._buffer[end + 4 : stop])
            del self._buffer[:stop]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        raise NotImplementedError


async def serve(protocol: type[Requests], port: int = 0) -> None:
    """Serve on that port of this machine, say which it is, end with standard input."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, "127.0.0.1", port, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
