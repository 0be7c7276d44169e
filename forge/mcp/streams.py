"""Bounded streams of lines between MCP clients and servers."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError
from mcp_types import jsonrpc_message_adapter as messages
from msgspec import Struct

from forge.interpreters.threads import in_thread, unheard

# Bounded lines of a stdio server: one that is too long is dropped while it is read.

_KEPT = 200
"""Bytes to keep from the beginning and the end of a line that is too long."""

_FIRST = re.compile(rb'\s*+\{\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+,\s*+"id"\s*+:\s*+(\d{1,18})\s*+,')
_LAST = re.compile(rb'"id"\s*+:\s*+(\d{1,18})\s*+(?:,\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+)?\}\s*+\Z')


class TooLong(Struct, frozen=True):
    """A line that was too long: its size in bytes, its beginning and its end."""

    size: int
    start: bytes
    end: bytes


class LineSplitter:
    """Splits a byte stream into lines; keeps at most `limit` bytes and the last chunk in memory."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._size = 0
        self._end = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in this chunk, without line feeds."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._add(part)
            line = bytes(self._begun)
            found = line if self._size <= self._limit else TooLong(self._size, line, self._end)
            self._begun, self._size, self._end = bytearray(), 0, b""
            yield found
        self._add(rest)

    def _add(self, part: bytes) -> None:
        before, self._size = self._size, self._size + len(part)
        if self._size <= self._limit:
            self._begun += part
            return
        ended = self._end if before > self._limit else bytes(self._begun[-_KEPT:])
        self._end = (ended + part)[-_KEPT:]
        self._begun = (self._begun + part)[:_KEPT]


def answered_request(start: bytes, end: bytes) -> int | None:
    """The id of the request that an unreadable message answers, at the places where the two SDKs write it."""
    found = _FIRST.match(start[:_KEPT]) or _LAST.search(end[-_KEPT:])
    return int(found[1]) if found else None


# Byte streams: the messages of one client on two descriptors, read and written in threads.

_CHUNK = 1 << 16
_LIMIT = 16 << 20
"""Maximum bytes of a client's message; longer ones are rejected."""

_UNTAKEN = 1000
"""Maximum untaken answers; beyond that, no more requests are read."""


@asynccontextmanager
async def byte_streams(source: int, target: int) -> AsyncIterator[TransportStreams]:
    """A stream of messages read from one descriptor until it is closed, and one of messages to write to the other."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception]()
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
    taken = asyncio.Event()

    async def room() -> None:
        """Wait until the client takes its answers, so that they do not pile up."""
        while from_server.statistics().tasks_waiting_send > _UNTAKEN:
            taken.clear()
            await taken.wait()

    reading, writing = _read(source, to_server, to_client, room), _write(target, from_server, taken)
    work = (asyncio.create_task(reading), asyncio.create_task(writing))
    try:
        yield from_client, to_client
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _read(
    source: int,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    to_client: MemoryObjectSendStream[SessionMessage],
    room: Callable[[], Awaitable[None]],
) -> None:
    lines = LineSplitter(_LIMIT)
    async with to_server:
        while (chunk := await in_thread(partial(os.read, source, _CHUNK), unheard)) and isinstance(chunk, bytes):
            for line in lines.feed(chunk):
                await room()
                read: SessionMessage | Exception
                try:
                    if isinstance(line, TooLong):
                        read = ValueError(f"a message of {line.size:,} bytes; at most {_LIMIT:,} are read")
                    else:
                        read = SessionMessage(messages.validate_json(line, by_name=False))
                except ValueError as error:
                    read = error
                if isinstance(read, Exception) and (asked := _asked(line)) is not None:
                    # Without an answer the client would wait for its own timeout.
                    said = str(read) if type(read) is ValueError else "the request is not valid JSON-RPC 2.0"
                    await to_client.send(
                        SessionMessage(
                            JSONRPCError(jsonrpc="2.0", id=asked, error=ErrorData(code=INVALID_REQUEST, message=said))
                        )
                    )
                else:
                    await to_server.send(read)


class _Request(Struct):
    id: int | str
    method: str


def _asked(line: bytes | TooLong) -> int | str | None:
    """The id of the request in an unreadable message, if it can be found."""
    start, end = (line.start, line.end) if isinstance(line, TooLong) else (line, line)
    try:
        return msgspec.json.decode(start, type=_Request).id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return answered_request(start, end) if b'"method"' in start + end else None


async def _write(target: int, from_server: MemoryObjectReceiveStream[SessionMessage], taken: asyncio.Event) -> None:
    async with from_server:
        async for item in from_server:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            await in_thread(partial(_write_all, target, line), unheard)
            taken.set()


def _write_all(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]
