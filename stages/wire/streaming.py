"""Streaming: the common part of the wires' incremental decoders. Bytes in, pieces of a reply out."""

from collections.abc import Iterable
from typing import Protocol, Self, TypeVar

from stages.effect import Fault
from stages.wire.deltas import Piece
from stages.wire.faults import too_many_objects
from stages.wire.lines import Lines

StreamRead = tuple[Piece | Fault, ...]
"""What a decoder read. After `Ended` or a Fault, nothing else counts."""


class Decoder(Protocol):
    """The state of reading one reply's stream: a value, like all of the core."""

    def advance(self, chunk: bytes) -> tuple["Decoder", StreamRead]:
        """The decoder after the next bytes, and what they add."""
        ...

    def finish(self) -> StreamRead:
        """What the end of the stream adds; empty if it came too early."""
        ...


LINE_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of one line of a stream: a server may give the whole reply in one."""


class _Reader(Protocol):
    """A decoder that reads payloads one by one."""

    @property
    def lines(self) -> Lines:
        """The stream split into lines so far."""
        ...

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The decoder after the next payload, and what it adds."""
        ...


_R = TypeVar("_R", bound=_Reader)


def read_all(reader: _R, payloads: Iterable[bytes]) -> tuple[_R, StreamRead]:
    """The reader after these payloads, and all that they add; at the end the fault of a line that is too long."""
    pieces: list[Piece | Fault] = []
    for payload in payloads:
        if (fault := too_many_objects(payload)) is not None:
            return reader, (*pieces, fault)
        reader, added = reader.read(payload)
        pieces += added
    if reader.lines.size > LINE_LIMIT:
        pieces.append(Fault(kind="too_large", detail=f"a line of the stream has more than {LINE_LIMIT} bytes"))
    return reader, tuple(pieces)
