"""Relay: the events of a stream to a client: the backend's own as they came, or forge's.

A stream begins with the backend's events where these are of the client's protocol. Once forge has to say something
itself, a ping before the first event or the reply to a retry, all that follows is forge's, under the same id.
"""

import re

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.proxy.asgi import Headers, Outlet
from forge.proxy.exchange import Exchange
from forge.proxy.upstream import Heard
from stages.effect import Fault
from stages.repair.decoding import decode
from stages.wire.answers import Envelope, Events
from stages.wire.deltas import Ended, Piece
from stages.wire.served import RequestError

PING = b": keep-alive\n\n"


class _Message(Struct):
    id: str = ""
    model: str = ""


class _First(Struct):
    """What the first event of a stream says of the answer; Anthropic's has it in `message`."""

    id: str = ""
    model: str = ""
    created: int = 0
    message: _Message | None = None


_first = msgspec.json.Decoder(_First)
_DATA = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)


class Relay:
    """The stream of one exchange."""

    def __init__(self, exchange: Exchange, out: Outlet) -> None:
        self._exchange, self._out = exchange, out
        self._pieces: list[Piece] = []
        self._start = b""
        self._own: Events | None = None if exchange.same else exchange.wire.events(exchange.envelope())

    async def show(self, heard: Heard, headers: Headers = ()) -> None:
        """Show an event."""
        await self._out.stream(headers)
        pieces = [piece for piece in heard.pieces if not isinstance(piece, Fault)]
        if self._own is not None or not (heard.raw or self._start):
            # Without bytes of its own it is a reply that did not come as a stream.
            await self._say(pieces)
            return
        if any(isinstance(piece, Ended) and piece.assumed for piece in pieces) and not self._several():
            # Clients take a stream without a finish reason for one that broke off, and ask again and again.
            await self.say(tuple(replace(p, usage=None) if isinstance(p, Ended) else p for p in pieces))
            return
        self._start = self._start or heard.raw
        self._pieces += pieces
        await self._out.write(heard.raw)

    async def say(self, pieces: tuple[Piece, ...], headers: Headers = ()) -> None:
        """Show pieces of forge's own."""
        await self._out.stream(headers)
        self._take_over()
        await self._say(pieces)

    async def ping(self) -> None:
        """Keep the stream alive."""
        await self._out.stream()
        if self._several():
            await self._out.write(PING)
            return
        own, event = self._take_over().ping() if self._own is None and not self._start else self._spoken().ping()
        if self._own is not None:
            self._own = own
        await self._out.write(event)

    async def fail(self, error: RequestError) -> None:
        """End the stream with an error."""
        await self._out.stream()
        await self._out.write(self._spoken().fail(error))
        await self._out.end()

    def _several(self) -> bool:
        """Whether several choices, or what forge has no noun for, come: the backend's own events to the end."""
        return self._exchange.request.n > 1 or self._exchange.request.logprobs

    def _take_over(self) -> Events:
        """From now on events are forge's."""
        self._own = self._spoken()
        return self._own

    def _spoken(self) -> Events:
        """The encoder that goes on where the stream is."""
        if self._own is not None:
            return self._own
        events = self._exchange.wire.events(self._envelope())
        if self._start:
            events, _ = events.begin()
        for piece in self._pieces:
            events, _ = events.advance(piece)
        return events

    def _envelope(self) -> Envelope:
        """The envelope of the stream as the backend has begun it."""
        made, data = self._exchange.envelope(), _DATA.search(self._start)
        if data is None:
            return made
        try:
            first = decode(_first, data[1])
        except msgspec.DecodeError:
            return made
        said = first.message or _Message(id=first.id, model=first.model)
        return replace(made, id=said.id or made.id, model=said.model, created=first.created or made.created)

    async def _say(self, pieces: "list[Piece] | tuple[Piece, ...]") -> None:
        events = self._spoken()
        written: list[bytes] = []
        for piece in pieces:
            events, data = events.advance(piece)
            written.append(data)
        self._own = events
        await self._out.write(b"".join(written))
