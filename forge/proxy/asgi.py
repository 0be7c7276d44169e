"""ASGI (https://asgi.readthedocs.io/en/stable/specs/www.html): a request as the proxy reads it, and its answer."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypedDict

from msgspec import Struct

from forge.proxy.passage import Notes
from stages.wire.served import WireAnswer

Headers = tuple[tuple[str, str], ...]


class Scope(TypedDict, total=False):
    """What uvicorn says of a request."""

    type: str
    method: str
    path: str
    query_string: bytes
    headers: list[tuple[bytes, bytes]]


class Message(TypedDict, total=False):
    """What is received and sent."""

    type: str
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    more_body: bool


Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Asked(Struct, frozen=True, kw_only=True):
    """A request. Header names are in lower case; of several with one name the last counts."""

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    query: bytes = b""
    body: bytes = b""

    def header(self, name: str) -> str:
        """A header's value; empty where there is none."""
        return self.headers.get(name.encode(), b"").decode("latin-1")


class Outlet:
    """The answer to one request, whole or streamed; `status` and `notes` are for the log."""

    def __init__(self, send: Send, headers: Headers = ()) -> None:
        self._send, self._own = send, headers
        self.status = 0
        self.notes = Notes()
        self.written = time.monotonic()
        self.ended = False

    @property
    def begun(self) -> bool:
        """Whether the status has been sent."""
        return self.status != 0

    async def answer(self, answer: WireAnswer, kind: str = "application/json") -> None:
        """Send a whole answer."""
        length = ("content-length", str(len(answer.body)))
        await self._begin(answer.status, (("content-type", kind), length, *answer.headers))
        await self._finish(answer.body)

    async def stream(self, headers: Headers = ()) -> None:
        """Begin a stream of events; nothing where it has begun."""
        if not self.begun:
            usual = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
            await self._begin(200, (*usual, ("x-accel-buffering", "no"), *headers))

    async def write(self, data: bytes) -> None:
        """Send more of a stream."""
        if data and not self.ended:
            self.written = time.monotonic()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the stream; ending twice is no mistake."""
        if not self.ended:
            await self._finish(b"")

    async def _begin(self, status: int, headers: Headers) -> None:
        self.status, self.written = status, time.monotonic()
        noted = {"x-forge-compacted": self.notes.compacted, "x-forge-left-out": ", ".join(self.notes.left_out)}
        told = _encoded((*headers, *((name, value) for name, value in noted.items() if value), *self._own))
        await self._send({"type": "http.response.start", "status": status, "headers": told})

    async def _finish(self, body: bytes) -> None:
        self.ended = True
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]
