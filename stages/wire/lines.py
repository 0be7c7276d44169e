"""Lines of a stream of bytes, however the network splits it; and the payloads of server-sent events."""

from collections.abc import Iterable
from typing import Self

from msgspec import Struct


class Lines(Struct, frozen=True, kw_only=True):
    """A stream split into lines so far. Begin with `Lines()`; lines end in LF, CR or CRLF."""

    held: tuple[bytes, ...] = ()
    """The beginning of the next line, in few parts."""
    returned: bool = False
    """Whether the last byte was a CR: an LF after it ends no line of its own."""

    @property
    def size(self) -> int:
        """Bytes of the line that has begun."""
        return sum(map(len, self.held))

    def advance(self, chunk: bytes) -> tuple[Self, tuple[bytes, ...]]:
        """The lines after the next bytes, and those that are complete, without their ends."""
        if self.returned and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) or not lines else lines.pop()
        kept = type(self)(held=appended(() if lines else self.held, rest), returned=chunk.endswith(b"\r"))
        if not lines:
            return kept, ()
        return kept, (b"".join((*self.held, lines[0])), *lines[1:])

    def finish(self) -> tuple[bytes, ...]:
        """The last line, if the stream ends without ending it."""
        return (b"".join(self.held),) if self.held else ()


def appended(parts: tuple[bytes, ...], more: bytes) -> tuple[bytes, ...]:
    """The parts with more at the end. Few parts, each longer than the next: a long text costs n log n, not n²."""
    if not more:
        return parts
    length, start = len(more), len(parts)
    while start and len(parts[start - 1]) <= length:
        start -= 1
        length += len(parts[start])
    return (*parts[:start], b"".join((*parts[start:], more)))


def payloads(lines: Iterable[bytes]) -> tuple[bytes, ...]:
    """The JSON in lines of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    The protocols here write one JSON a line, so each `data:` line is taken for itself: some servers leave out the
    blank line between events. llama.cpp before September 2025 reports errors in a field of its own, `error:`.
    """
    found = []
    for line in lines:
        if line.startswith(b"data:"):
            found.append(line[5:].strip())
        elif line.startswith(b"error:"):
            found.append(b'{"error":' + line[6:] + b"}")
    return tuple(filter(None, found))
