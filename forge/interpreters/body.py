"""The body of an answer, read up to a bound, and never unpacked: what is packed may hold a thousand times as much."""

import httpx

IDENTITY = {"accept-encoding": "identity"}
"""The header that asks a server not to pack its answer: answers are small, and a stream must not be held back."""


def packing(response: httpx.Response) -> str:
    """How the body is packed although nobody asked for that; empty where it is not."""
    packed: str = response.headers.get("content-encoding", "").strip().lower()
    return "" if packed == "identity" else packed[:40]


async def beginning(response: httpx.Response, most: int) -> bytes:
    """The first `most` bytes of the body as they came over the wire; less where it is shorter."""
    chunks, length = [], 0
    async for chunk in response.aiter_raw():
        chunks.append(chunk[: most - length])
        length += len(chunk)
        if length >= most:
            break
    return b"".join(chunks)
