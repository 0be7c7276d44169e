"""Hearing: what a backend answers, whatever it was asked for and says that it sends: events, or a whole reply."""

from collections.abc import Iterable

from forge.proxy.events import EventCutter
from forge.proxy.upstream import Heard, Refusal
from stages.effect import Fault, Reply
from stages.wire.deltas import Ended, gather_reply, reply_pieces
from stages.wire.wires import Wire


class Hearing:
    """Chunks in, events out. An answer that begins as an object is a whole reply, except for Ollama's lines."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._decoder, self._cutter = wire, wire.stream, EventCutter()
        self._whole: list[bytes] | None = None
        self._begun = self._ended = False

    def hear(self, chunk: bytes) -> Iterable[Heard]:
        """The events that are whole now. TooLongError for one that does not end."""
        if not self._begun:
            chunk = chunk.lstrip()
            self._begun = bool(chunk)
            self._whole = [] if chunk.startswith(b"{") and self._wire.name != "ollama" else None
        if self._whole is not None:
            self._whole.append(chunk)
            return ()
        # Ollama's events are lines, and nobody is sent them as they came.
        return [self._heard(raw) for raw in ((chunk,) if self._wire.name == "ollama" else self._cutter.cut(chunk))]

    def end(self) -> Iterable[Heard | Refusal]:
        """What the end of the answer adds."""
        if self._whole is not None:
            raw = b"".join(self._whole)
            reply = self._wire.decode(raw)
            if isinstance(reply, Fault):
                return [Refusal(reply, raw)]
            return [Heard(b"", (piece,)) for piece in reply_pieces(reply)]
        last = self._heard(self._cutter.rest())
        return [Heard(last.raw, (*last.pieces, *(() if self._ended else self._decoder.finish())))]

    def _heard(self, raw: bytes) -> Heard:
        self._decoder, pieces = self._decoder.advance(raw)
        self._ended = self._ended or any(isinstance(piece, Ended) for piece in pieces)
        return Heard(raw, pieces)


def streamed_reply(wire: Wire, answer: bytes) -> Reply | None:
    """The reply of a server that streams although it was asked for all at once; None for an answer that is none."""
    decoder, pieces = wire.stream.advance(answer)
    ended = any(isinstance(piece, Ended) for piece in pieces)
    reply = gather_reply((*pieces, *(() if ended else decoder.finish())))
    return None if isinstance(reply, Fault) else reply
