"""Lines of a stdio server, each bounded: what is too long is dropped while it is read."""

import re
from collections.abc import Iterator

from msgspec import Struct

_KEPT = 200
"""Bytes of the beginning and of the end that are kept of a line that is too long."""

_FIRST = re.compile(rb'\s*+\{\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+,\s*+"id"\s*+:\s*+(\d{1,18})\s*+,')
_LAST = re.compile(rb'"id"\s*+:\s*+(\d{1,18})\s*+(?:,\s*+"jsonrpc"\s*+:\s*+"2\.0"\s*+)?\}\s*+\Z')


class TooLong(Struct, frozen=True):
    """A line that was too long: its size in bytes, its beginning and its end."""

    size: int
    start: bytes
    end: bytes


class Lines:
    """The lines of a stream of bytes. What is kept in memory is at most `limit` bytes and the last chunk."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._size = 0
        self._end = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in this chunk, without their line feeds."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._add(part)
            yield self._taken()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        before, self._size = self._size, self._size + len(part)
        if self._size <= self._limit:
            self._begun += part
            return
        ended = self._end if before > self._limit else bytes(self._begun[-_KEPT:])
        self._end = (ended + part)[-_KEPT:]
        self._begun = (self._begun + part)[:_KEPT]

    def _taken(self) -> bytes | TooLong:
        line = bytes(self._begun)
        found = line if self._size <= self._limit else TooLong(self._size, line, self._end)
        self._begun, self._size, self._end = bytearray(), 0, b""
        return found


def answered_request(start: bytes, end: bytes) -> int | None:
    """The id of the request that an unreadable message answers, where the two SDKs write it: first, or last."""
    found = _FIRST.match(start[:_KEPT]) or _LAST.search(end[-_KEPT:])
    return int(found[1]) if found else None
