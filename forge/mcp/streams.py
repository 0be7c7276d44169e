"""Byte streams: the messages of one client on two file descriptors, read and written in threads of their own."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
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
from forge.mcp.lines import Lines, TooLong, answered_request

_CHUNK = 1 << 16
_LIMIT = 16 << 20
"""Maximum bytes of a client's message; a longer one is not read."""

_UNTAKEN = 1000
"""Answers that may wait for a client to take them; then no more of its requests are read."""


@asynccontextmanager
async def byte_streams(source: int, target: int) -> AsyncIterator[TransportStreams]:
    """The messages that come from the one descriptor, until it is closed, and those that go to the other."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception]()
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
    taken = asyncio.Event()

    async def room() -> None:
        """Wait for a client that takes no answers: they would pile up here as long as it asks."""
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
    lines = Lines(_LIMIT)
    async with to_server:
        while (chunk := await in_thread(partial(os.read, source, _CHUNK), unheard)) and isinstance(chunk, bytes):
            for line in lines.feed(chunk):
                await room()
                read = _message(line)
                if isinstance(read, Exception) and (asked := _asked(line)) is not None:
                    await to_client.send(_unreadable(asked, read))
                else:
                    await to_server.send(read)


def _message(line: bytes | TooLong) -> SessionMessage | Exception:
    if isinstance(line, TooLong):
        return ValueError(f"a message of {line.size:,} bytes; at most {_LIMIT:,} are read")
    try:
        return SessionMessage(messages.validate_json(line, by_name=False))
    except ValueError as error:
        return error


class _Request(Struct):
    id: int | str
    method: str


def _asked(line: bytes | TooLong) -> int | str | None:
    """The id of the request in a message that cannot be read, where it can be told."""
    start, end = (line.start, line.end) if isinstance(line, TooLong) else (line, line)
    try:
        return msgspec.json.decode(start, type=_Request).id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return answered_request(start, end) if b'"method"' in start + end else None


def _unreadable(asked: int | str, why: Exception) -> SessionMessage:
    """The answer to such a request: its client would wait for one until its own time limit."""
    said = str(why) if type(why) is ValueError else "the request is no valid JSON-RPC 2.0"
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=asked, error=ErrorData(code=INVALID_REQUEST, message=said)))


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
