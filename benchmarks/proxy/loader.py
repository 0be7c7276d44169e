"""A load of requests over connections that stay open, each with the next request when its last was answered."""

import asyncio
import time

from msgspec import Struct

PATIENCE = 60.0
"""Seconds for one request."""


class Load(Struct, frozen=True):
    """What came of it: by request, the seconds to the first byte of the body and to its end."""

    first: tuple[float, ...]
    whole: tuple[float, ...]


async def load(port: int, body: bytes, requests: int, at_once: int = 1) -> Load:
    """Send so many requests, some at a time. RuntimeError for an answer that is not 200."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    sent = b"%bauthorization: Bearer x\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body)
    shares = [requests // at_once + (n < requests % at_once) for n in range(at_once)]
    times = await asyncio.gather(*(_connection(port, sent, share) for share in shares))
    both = [pair for part in times for pair in part]
    return Load(tuple(first for first, _ in both), tuple(end for _, end in both))


async def _connection(port: int, sent: bytes, requests: int) -> list[tuple[float, float]]:
    times: list[tuple[float, float]] = []
    while len(times) < requests:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        before, stays = len(times), True
        try:
            while stays and len(times) < requests:
                first, whole, stays = await _asked(reader, writer, sent)
                times.append((first, whole))
        except (ConnectionError, asyncio.IncompleteReadError):
            # Some servers promise to keep a connection, and close it; a new one must do.
            if len(times) == before:
                raise
        finally:
            writer.close()
    return times


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> tuple[float, float, bool]:
    """The seconds to the first byte and to the last; and whether the connection stays open."""
    began = time.perf_counter()
    writer.write(sent)
    async with asyncio.timeout(PATIENCE):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"an answer that is no success: {head[:200]!r}")
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        await reader.readexactly(1)
        first = time.perf_counter()
        if length:
            await reader.readexactly(length - 1)
        elif b"chunked" in head:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        else:
            await reader.read(-1)
    stays = b"connection: close" not in head and (length > 0 or b"chunked" in head)
    return first - began, time.perf_counter() - began, stays
