"""Relay: the events of a stream to a client, either the backend's own or written by forge.

A stream begins with the backend's events if they are in the client's protocol. Once clients would not accept one, or
forge has to write something itself, such as the reply to a retry, forge writes the rest under the same id.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from forge.proxy.app import NotedOutlet
from forge.proxy.exchange import Exchange
from forge.proxy.upstream import Heard
from stages.effect import Fault
from stages.wire.deltas import Ended, Piece, ReasoningDelta
from stages.wire.server.errors import RequestError
from stages.wire.server.streams import Events, Passed

PING = b": keep-alive\n\n"


class Relay:
    """The stream of one exchange."""

    def __init__(self, exchange: Exchange, out: NotedOutlet) -> None:
        self._out, envelope = out, exchange.envelope
        # The backend's own events, to the end.
        self._as_it_is = exchange.same and exchange.unmodelled
        self._strips = exchange.strips
        same = exchange.same and not self._strips
        self._passed = exchange.wire.passed(envelope) if same and exchange.wire.passed else None
        """The state of passing events on; None once forge writes them."""
        self._own = exchange.wire.events(envelope)
        self._bytes = False
        """Whether bytes of the backend were sent."""
        self._cut = False
        """Whether they ended within an event; forge's own events must be separated from it."""

    async def show(self, shown: Sequence[Heard]) -> None:
        """Send events: all unchanged, or all rewritten."""
        if not shown:
            return
        self._bytes = self._bytes or any(heard.raw for heard in shown)
        as_it_is = self._as_it_is and self._bytes
        passed = None if self._passed is None or as_it_is else _passed_on(self._passed, shown)
        if passed is None and not as_it_is:
            pieces = (piece for heard in shown for piece in heard.pieces if not isinstance(piece, Fault))
            await self.say(tuple(pieces))
            return
        self._passed = passed or self._passed
        raw = b"".join(heard.raw for heard in shown)
        self._cut = not raw.endswith((b"\n\n", b"\n\r\n"))
        await self._out.stream()
        await self._out.write(raw)

    async def say(self, pieces: tuple[Piece, ...]) -> None:
        """Send pieces as events written by forge."""
        events, written = self._events(), list[bytes]()
        told: Iterable[Piece] = filter(None, map(_without_reasoning, pieces)) if self._strips else pieces
        for piece in told:
            events, data = events.advance(piece)
            written.append(data)
        self._take_over(events)
        await self._write(b"".join(written))

    async def ping(self) -> None:
        """Send a keep-alive event."""
        events = self._events()
        after, event = events.ping()
        if self._as_it_is:
            event = PING
        elif after is not events:
            self._take_over(after)
        await self._write(event)

    async def fail(self, error: RequestError) -> None:
        """End the stream with an error."""
        await self._write(self._events().fail(error))
        await self._out.end()

    async def _write(self, own: bytes) -> None:
        """Send bytes written by forge."""
        await self._out.stream()
        if own:
            apart, self._cut = b"\n\n" * self._cut, False
            await self._out.write(apart + own)

    def _events(self) -> Events:
        """The writer of forge's events at this point of the stream."""
        return self._own if self._passed is None else self._passed.go_on()

    def _take_over(self, events: Events) -> None:
        """Let forge write all events from now on."""
        self._passed, self._own = None, events


def _passed_on(passed: Passed, shown: Sequence[Heard]) -> Passed | None:
    """The state after these events; None if clients would not accept all of them unchanged."""
    for heard in shown:
        passed, fits = passed.advance(heard.raw)
        ended = any(isinstance(piece, Ended) for piece in heard.pieces)
        # Pieces without bytes come from a reply that was not streamed, or from the end of the stream.
        lacks = not passed.over if ended else bool(heard.pieces) and not heard.raw
        if lacks or not fits:
            return None
    return passed


def _without_reasoning(piece: Piece) -> Piece | None:
    if isinstance(piece, ReasoningDelta):
        return None
    return replace(piece, sealed="") if isinstance(piece, Ended) else piece
