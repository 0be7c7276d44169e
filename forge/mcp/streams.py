"""Byte streams: the messages of one client on two file descriptors, read and written in threads of their own."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter as messages

from forge.interpreters.threads import in_thread, unheard
from forge.mcp.lines import Lines, TooLong

_CHUNK = 1 << 16
_LIMIT = 16 << 20
"""Maximum bytes of a client's message; a longer one is not read, and not answered."""


@asynccontextmanager
async def byte_streams(source: int, target: int) -> AsyncIterator[TransportStreams]:
    """The messages that come from the one descriptor, until it is closed, and those that go to the other."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception]()
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
    work = (asyncio.create_task(_read(source, to_server)), asyncio.create_task(_write(target, from_server)))
    try:
        yield from_client, to_client
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _read(source: int, to_server: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    lines = Lines(_LIMIT)
    async with to_server:
        while (chunk := await in_thread(partial(os.read, source, _CHUNK), unheard)) and isinstance(chunk, bytes):
            for line in lines.feed(chunk):
                await to_server.send(_message(line))


def _message(line: bytes | TooLong) -> SessionMessage | Exception:
    if isinstance(line, TooLong):
        return ValueError(f"a message of {line.size:,} bytes; at most {_LIMIT:,} are read")
    try:
        return SessionMessage(messages.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(target: int, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with from_server:
        async for item in from_server:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            await in_thread(partial(_write_all, target, line), unheard)


def _write_all(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]
