"""A model server that answers at once, in a process of its own, on a free port of 127.0.0.1.

Prints the port as a line, then serves until its standard input is closed. The script is in the model's name
(`workload.model_name`). POST …/chat/completions answers; GET …/stats?run=MODEL says what that run sent.
"""

import asyncio
import json
import re
import sys

from replies import reply

_MODEL = re.compile(rb'"model"\s*:\s*"([^"]+)"')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)

sent: dict[str, list[int]] = {}
"""By model: the requests of the run and their bytes."""


def answer(body: bytes) -> bytes:
    """The script's next reply for the model that the body names; the body is searched, not parsed."""
    found = _MODEL.search(body)
    model = found[1].decode() if found else "script-1-text-0"
    _, turns, terminal, _ = model.split("-", 3)
    count = sent.setdefault(model, [0, 0])
    count[0] += 1
    count[1] += len(body)
    answered: bytes = reply(model, int(turns), terminal, count[0] - 1, len(body) // 4)
    return answered


class Server(asyncio.Protocol):
    """HTTP/1.1 as far as the peers need it: a head, a body of known length, connections that stay open."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport if isinstance(transport, asyncio.Transport) else None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._buffer, 0, end + 2)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < whole:
                return
            line, body = bytes(self._buffer[: self._buffer.find(b"\r\n")]), bytes(self._buffer[end + 4 : whole])
            del self._buffer[:whole]
            self._write(answer(body) if line.startswith(b"POST") else _stats(line))

    def _write(self, body: bytes) -> None:
        if self._transport is not None:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            self._transport.write(head % len(body) + body)


def _stats(line: bytes) -> bytes:
    model = line.split(b" ")[1].rpartition(b"run=")[2].decode()
    requests, size = sent.pop(model, [0, 0])
    return json.dumps({"requests": requests, "bytes": size}).encode()


async def serve() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
