"""The body of an HTTP answer, read to a bound and never unpacked: packed, a body may hold a thousand times as much."""

from collections.abc import AsyncIterator
from typing import Self

import httpx
from msgspec import Struct

IDENTITY = {"accept-encoding": "identity"}
"""The header that asks a server not to pack its answer: answers are small, and a stream must not be held back."""


class TooLargeError(Exception):
    """A body has more bytes than may be read."""


class Bounded:
    """The chunks of a body as they come over the wire. TooLargeError once there are more than `limit` bytes."""

    def __init__(self, chunks: AsyncIterator[bytes], limit: int) -> None:
        self._chunks = chunks
        self._left = limit

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk."""
        chunk = await anext(self._chunks)
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLargeError
        return chunk


class Body(Struct, frozen=True, kw_only=True):
    """What was read of a body: nothing if it is `packed` (the coding's name), its beginning if it is not `whole`."""

    content: bytes = b""
    whole: bool = True
    packed: str = ""


async def read_body(response: httpx.Response, limit: int) -> Body:
    """The body of a response that nobody has read yet, to at most `limit` bytes."""
    if packed := packing(response):
        return Body(whole=False, packed=packed)
    chunks: list[bytes] = []
    try:
        async for chunk in Bounded(response.aiter_raw(), limit):
            chunks.append(chunk)  # noqa: PERF401 - what came before the bound is kept
    except TooLargeError:
        return Body(content=b"".join(chunks), whole=False)
    return Body(content=b"".join(chunks))


def packing(response: httpx.Response) -> str:
    """How the body is packed although nobody asked for that; empty where it is not."""
    packed: str = response.headers.get("content-encoding", "").strip().lower()
    return "" if packed == "identity" else packed[:40]
