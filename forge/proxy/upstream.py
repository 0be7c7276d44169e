"""Upstream: the interface to a backend, and the reader of its answers. Pure but for the connection."""

import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from forge.connection import Connection
from stages.effect import Fault, Replied, Reply, Request, Send
from stages.wire.deltas import Ended, Piece, gather_reply, reply_pieces
from stages.wire.faults import Overflow, overflow_of
from stages.wire.wires import Wire

if TYPE_CHECKING:
    from forge.proxy.http_upstream import HttpUpstream


class Forwarded(Struct, frozen=True, kw_only=True):
    """What is forwarded of a client: its credential, and headers that affect how its body is read."""

    key: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Post(Struct, frozen=True, kw_only=True):
    """A request to a backend. `body` is the client's own, if that is sent unchanged."""

    request: Request
    body: bytes = b""
    forwarded: Forwarded = Forwarded()
    trace: tuple[tuple[str, str], ...] = ()
    """Headers for distributed tracing."""


class Whole(Struct, frozen=True):
    """A whole answer, decoded and raw; `raw` is empty if it did not come over a protocol."""

    reply: Reply
    raw: bytes = b""


class Refusal(Struct, frozen=True):
    """A fault and the body that reported it. `tokens` is the size of the prompt, if it was counted."""

    fault: Fault
    raw: bytes = b""
    tokens: int = 0

    @property
    def overflow(self) -> Overflow | None:
        """The reported overflow; None for other faults."""
        told = overflow_of(self.fault)
        return replace(told, tokens=self.tokens, at_least=False) if told and self.tokens else told


class TransportError(Exception):
    """There is no answer, or not all of it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class Heard(Struct, frozen=True):
    """An event of a stream, raw and decoded."""

    raw: bytes
    pieces: tuple[Piece | Fault, ...]


class ConnectionUpstream:
    """A backend that is not an HTTP server, asked through its connection; replies arrive whole."""

    def __init__(self, connection: Connection) -> None:
        self._send = connection.send

    async def whole(self, post: Post) -> Whole | Refusal:
        """The whole answer."""
        outcome = await self._send(Send(request=post.request, turn=1))
        return Whole(outcome.reply) if isinstance(outcome, Replied) else Refusal(outcome.fault)

    async def count(self, _: Post) -> int | Refusal | None:
        """None: it accepts no client bodies."""
        return None

    async def stream(self, post: Post) -> AsyncGenerator[Heard | Refusal]:
        """The whole answer in pieces."""
        answer = await self.whole(post)
        if isinstance(answer, Refusal):
            yield answer
            return
        for piece in reply_pieces(answer.reply):
            yield Heard(b"", (piece,))


Upstream: TypeAlias = "ConnectionUpstream | HttpUpstream"
"""A backend. `stream` yields a Refusal last; close its iterator to cancel the request."""

# Reading an answer event by event, whatever its content type says: events or a whole reply.

_EVENT_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of one event: a server may send the whole reply in it."""

_END = re.compile(rb"\n\r?\n")
"""The blank line that ends an event; lines may end in LF or CRLF."""

_LINE = re.compile(rb"^(?:data)?:", re.MULTILINE)
"""The beginning of a line with data, or of a comment."""


class Hearing:
    """Chunks in, events out. An answer that begins with `{` is a whole reply, except for lines of JSON."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._decoder = wire, wire.stream
        self._held = bytearray()
        """The beginning of an event that has not ended."""
        self._whole: list[bytes] | None = None
        self._begun = self._ended = False

    def hear(self, chunk: bytes) -> Iterator[Heard]:
        """The complete events, decoded lazily. TransportError if one does not end."""
        if not self._begun:
            chunk = chunk.lstrip()
            self._begun = bool(chunk)
            self._whole = [] if chunk.startswith(b"{") and not self._wire.json_lines else None
        if self._whole is not None:
            self._whole.append(chunk)
            return
        # No client is sent lines of JSON unchanged.
        for raw in chunk.splitlines(keepends=True) if self._wire.json_lines else self._cut(chunk):
            yield self._heard(raw)

    def end(self) -> Iterable[Heard | Refusal]:
        """The events that the end of the answer adds."""
        if self._whole is not None:
            raw = b"".join(self._whole)
            reply = self._wire.decode(raw)
            if isinstance(reply, Fault):
                return [Refusal(reply, raw)]
            return [Heard(b"", (piece,)) for piece in reply_pieces(reply)]
        last = self._heard(bytes(self._held))
        pieces = (*last.pieces, *(() if self._ended else self._decoder.finish()))
        return [Heard(last.raw, pieces)] if last.raw or pieces else []

    def _cut(self, chunk: bytes) -> list[bytes]:
        searched = max(0, len(self._held) - 2)
        self._held += chunk
        events: list[bytes] = []
        start = 0
        while end := _END.search(self._held, searched):
            events.append(bytes(self._held[start : end.end()]))
            start = searched = end.end()
        del self._held[:start]
        if len(self._held) > _EVENT_LIMIT:
            said = f"an event of the stream has more than {_EVENT_LIMIT} bytes"
            raise TransportError(Fault(kind="too_large", detail=said))
        return events

    def _heard(self, raw: bytes) -> Heard:
        """The event, without bytes that clients would ignore: those would hide what follows."""
        self._decoder, pieces = self._decoder.advance(raw)
        self._ended = self._ended or any(isinstance(piece, Ended) for piece in pieces)
        return Heard(raw if pieces or _LINE.search(raw) or raw.isspace() else b"", pieces)


def streamed_reply(wire: Wire, answer: bytes) -> Reply | None:
    """The reply in a streamed answer to a request for a whole one; None if the answer is invalid."""
    decoder, pieces = wire.stream.advance(answer)
    ended = any(isinstance(piece, Ended) for piece in pieces)
    reply = gather_reply((*pieces, *(() if ended else decoder.finish())))
    return None if isinstance(reply, Fault) else reply
