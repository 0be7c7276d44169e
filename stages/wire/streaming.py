"""Streaming: what the incremental decoders of the wires have in common. Bytes in, pieces of a reply out."""

from collections.abc import Iterable
from typing import Protocol, Self, TypeVar

from stages.delta import Piece
from stages.effect import Fault

Read = tuple[Piece | Fault, ...]
"""What a decoder read. After `Ended` or a Fault comes nothing that counts."""


class Decoder(Protocol):
    """How far the stream of one reply has been read: a value, like all of the core."""

    def advance(self, chunk: bytes) -> tuple["Decoder", Read]:
        """The next bytes: how far it is read now, and what they add."""
        ...

    def finish(self) -> Read:
        """What the end of the stream adds; nothing where it came too early."""
        ...


class Reader(Protocol):
    """A decoder, as far as it reads payloads one by one."""

    def read(self, payload: bytes) -> tuple[Self, Read]:
        """The next payload, and what it adds."""
        ...


R = TypeVar("R", bound=Reader)


def read_all(reader: R, payloads: Iterable[bytes]) -> tuple[R, Read]:
    """The reader after these payloads, and all that they add."""
    pieces: list[Piece | Fault] = []
    for payload in payloads:
        reader, added = reader.read(payload)
        pieces += added
    return reader, tuple(pieces)
