"""Upstream: how the proxy asks a backend, over HTTP or through the backend's own connection, and hears its answer."""

import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from forge.connection import Connection
from stages.effect import Fault, Replied, Reply, Request, Send
from stages.wire.deltas import Ended, Overflow, Piece, gather_reply, overflow_of, reply_pieces
from stages.wire.wires import Wire


class Forwarded(Struct, frozen=True, kw_only=True):
    """What goes on to the backend of who asks: the credential, and headers that say how to read the body."""

    key: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Post(Struct, frozen=True, kw_only=True):
    """What is sent. `body` is the client's own, where that is sent as it came."""

    request: Request
    body: bytes = b""
    forwarded: Forwarded = Forwarded()
    trace: tuple[tuple[str, str], ...] = ()
    """Headers that say which trace it belongs to."""


class Whole(Struct, frozen=True):
    """A whole answer as it reads, and as it came; `raw` is empty where there are no bytes of a protocol."""

    reply: Reply
    raw: bytes = b""


class Refusal(Struct, frozen=True):
    """A fault, and the body that told of it. `tokens` are the prompt's, where the backend was asked to count them."""

    fault: Fault
    raw: bytes = b""
    tokens: int = 0

    @property
    def overflow(self) -> Overflow | None:
        """What it tells of a prompt that is too long; None where it is about something else."""
        told = overflow_of(self.fault)
        return replace(told, tokens=self.tokens, at_least=False) if told and self.tokens else told


class Heard(Struct, frozen=True):
    """The next event of a stream, as it came and as it reads."""

    raw: bytes
    pieces: tuple[Piece | Fault, ...]


class Upstream(Protocol):
    """A backend as the proxy asks it."""

    async def whole(self, post: Post) -> Whole | Refusal:
        """The whole answer."""
        ...

    async def count(self, post: Post) -> int | Refusal | None:
        """How many tokens the body's prompt has, as the backend counts them; None where it does not."""
        ...

    def stream(self, post: Post) -> AsyncGenerator[Heard | Refusal]:
        """The answer's events as they come. A Refusal is the last; close the iterator to cancel the request."""
        ...


class ConnectionUpstream:
    """A backend that is no server, asked through its connection: its replies come in one go."""

    def __init__(self, connection: Connection) -> None:
        self._send = connection.send

    async def whole(self, post: Post) -> Whole | Refusal:
        """The whole answer."""
        outcome = await self._send(Send(request=post.request, turn=1))
        return Whole(outcome.reply) if isinstance(outcome, Replied) else Refusal(outcome.fault)

    async def count(self, _: Post) -> int | Refusal | None:
        """None: it takes no requests of a client's own."""
        return None

    async def stream(self, post: Post) -> AsyncGenerator[Heard | Refusal]:
        """The whole answer in pieces."""
        answer = await self.whole(post)
        if isinstance(answer, Refusal):
            yield answer
            return
        for piece in reply_pieces(answer.reply):
            yield Heard(b"", (piece,))


# Server-sent events cut out of a stream, each as it came with the blank line that ends it.

EVENT_LIMIT = 16 * 1024 * 1024
"""Bytes of one event: a server may give the whole reply in it."""


_END = re.compile(rb"\n\r?\n")


class TooLongError(Exception):
    """An event has more bytes than are kept."""


class EventCutter:
    """Cuts chunks into events; lines may end in LF or CRLF."""

    def __init__(self) -> None:
        self._held = bytearray()

    def cut(self, chunk: bytes) -> list[bytes]:
        """The events that are whole now. TooLongError for one that does not end."""
        searched = max(0, len(self._held) - 2)
        self._held += chunk
        events: list[bytes] = []
        start = 0
        while end := _END.search(self._held, searched):
            events.append(bytes(self._held[start : end.end()]))
            start = searched = end.end()
        del self._held[:start]
        if len(self._held) > EVENT_LIMIT:
            raise TooLongError
        return events

    def rest(self) -> bytes:
        """What the end of the stream has cut off."""
        return bytes(self._held)


# What a backend answers, read event by event.

_LINE = re.compile(rb"^(?:data)?:", re.MULTILINE)
"""The beginning of a line that says something to a client, or of a comment."""


class Hearing:
    """Chunks in, events out. An answer that begins as an object is a whole reply, except for Ollama's lines."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._decoder, self._cutter = wire, wire.stream, EventCutter()
        self._whole: list[bytes] | None = None
        self._begun = self._ended = False

    def hear(self, chunk: bytes) -> Iterator[Heard]:
        """The events that are whole now, each read when it is taken. TooLongError for one that does not end."""
        if not self._begun:
            chunk = chunk.lstrip()
            self._begun = bool(chunk)
            self._whole = [] if chunk.startswith(b"{") and self._wire.name != "ollama" else None
        if self._whole is not None:
            self._whole.append(chunk)
            return
        # Ollama's events are lines, and nobody is sent them as they came.
        for raw in chunk.splitlines(keepends=True) if self._wire.name == "ollama" else self._cutter.cut(chunk):
            yield self._heard(raw)

    def end(self) -> Iterable[Heard | Refusal]:
        """What the end of the answer adds."""
        if self._whole is not None:
            raw = b"".join(self._whole)
            reply = self._wire.decode(raw)
            if isinstance(reply, Fault):
                return [Refusal(reply, raw)]
            return [Heard(b"", (piece,)) for piece in reply_pieces(reply)]
        last = self._heard(self._cutter.rest())
        pieces = (*last.pieces, *(() if self._ended else self._decoder.finish()))
        return [Heard(last.raw, pieces)] if last.raw or pieces else []

    def _heard(self, raw: bytes) -> Heard:
        """The event, without bytes of which a client would read none: they would hide what comes next."""
        self._decoder, pieces = self._decoder.advance(raw)
        self._ended = self._ended or any(isinstance(piece, Ended) for piece in pieces)
        return Heard(raw if pieces or _LINE.search(raw) or raw.isspace() else b"", pieces)


def streamed_reply(wire: Wire, answer: bytes) -> Reply | None:
    """The reply of a server that streams although it was asked for all at once; None for an answer that is none."""
    decoder, pieces = wire.stream.advance(answer)
    ended = any(isinstance(piece, Ended) for piece in pieces)
    reply = gather_reply((*pieces, *(() if ended else decoder.finish())))
    return None if isinstance(reply, Fault) else reply
