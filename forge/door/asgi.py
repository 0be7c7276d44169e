"""ASGI (https://asgi.readthedocs.io/en/stable/specs/www.html): requests with a size limit, responses, disconnects.

A request whose client disconnects is cancelled at once: it may hold a model's slot.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Self, TypedDict

from msgspec import Struct

from stages.wire.server.errors import RequestError, WireAnswer

_LISTEN_AFTER = 0.02
"""Seconds before watching a request for a client disconnect: most are answered sooner."""

STOPPING = RequestError(message="the server stopped before the reply was complete", status=503)

Headers = tuple[tuple[str, str], ...]


class Scope(TypedDict, total=False):
    """A request as uvicorn announces it."""

    type: str
    method: str
    path: str
    query_string: bytes
    headers: list[tuple[bytes, bytes]]


class AsgiMessage(TypedDict, total=False):
    """An ASGI message, received or sent."""

    type: str
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    more_body: bool


Receive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request. Header names are in lower case; the last of repeated headers wins."""

    method: str
    path: str
    headers: Mapping[bytes, bytes]
    query: bytes = b""
    body: bytes = b""

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """The request, without its body."""
        headers = dict(scope["headers"])
        return cls(method=scope["method"], path=scope["path"], headers=headers, query=scope["query_string"])

    def header(self, name: str) -> str:
        """A header's value; empty if missing."""
        return self.headers.get(name.encode(), b"").decode("latin-1")


class Outlet:
    """The response to one request, whole or streamed. `headers` are added; `status` is 0 until it is sent."""

    def __init__(self, send: AsgiSend, headers: Headers = ()) -> None:
        self._send, self.headers = send, headers
        self.status = 0
        self.began = self.written = time.monotonic()
        self.ended = False

    @property
    def begun(self) -> bool:
        """Whether the status has been sent."""
        return self.status != 0

    @property
    def seconds(self) -> float:
        """Seconds since the request arrived."""
        return time.monotonic() - self.began

    async def answer(self, answer: WireAnswer, kind: str = "application/json") -> None:
        """Send a whole response."""
        length = ("content-length", str(len(answer.body)))
        await self._begin(answer.status, (("content-type", kind), length, *answer.headers))
        await self._finish(answer.body)

    async def stream(self, headers: Headers = ()) -> None:
        """Start a stream of events, unless it has started."""
        if not self.begun:
            usual = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
            await self._begin(200, (*usual, ("x-accel-buffering", "no"), *headers))

    async def write(self, data: bytes) -> None:
        """Send part of a stream."""
        if data and not self.ended:
            self.written = time.monotonic()
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the stream. Safe to call twice."""
        if not self.ended:
            await self._finish(b"")

    async def _begin(self, status: int, headers: Headers) -> None:
        self.status, self.written = status, time.monotonic()
        told = [(n.encode("latin-1"), v.encode("latin-1", "replace")) for n, v in (*headers, *self.headers)]
        await self._send({"type": "http.response.start", "status": status, "headers": told})

    async def _finish(self, body: bytes) -> None:
        self.ended = True
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


async def read_body(asked: HttpRequest, receive: Receive, limit: int) -> bytes | RequestError:
    """The body, or an error if it exceeds the limit. LeftError if the client disconnects."""
    said = asked.header("content-length")
    if said.isdigit() and int(said[:20]) > limit:
        return _too_large(limit)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise LeftError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            return _too_large(limit)
        if not message.get("more_body", False):
            return b"".join((*chunks, chunk)) if chunks else chunk
        chunks.append(chunk)


def _too_large(limit: int) -> RequestError:
    return RequestError(message=f"the request is larger than {limit} bytes", status=413)


class LeftError(Exception):
    """The client disconnected."""


class Leaving:
    """Watches for a client disconnect, and cancels the task that serves the request."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.left = False
        self._timer: asyncio.TimerHandle | None = None
        self._listening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start watching shortly."""
        self._serving = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(_LISTEN_AFTER, self._listen)

    def stop(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        if self._listening is not None:
            self._listening.cancel()

    def _listen(self) -> None:
        self._listening = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._serving is not None:
            self.left = True
            self._serving.cancel()


async def attended(
    asked: HttpRequest,
    handle: Callable[["Leaving"], Awaitable[None]],
    receive: Receive,
    out: Outlet,
    *,
    fail: Callable[[RequestError], WireAnswer],
    log: logging.Logger,
) -> Literal["", "disconnected", "aborted"]:
    """Serve a request to its end. Returns how it ended early, if it did. `fail` encodes an error for the client."""
    leaving = Leaving(receive)
    try:
        await handle(leaving)
    except asyncio.CancelledError:
        # The client disconnected, or the server is stopping and the grace period is over.
        if leaving.left:
            return "disconnected"
        if not out.begun:
            await out.answer(fail(STOPPING))
        return "aborted"
    except LeftError:
        return "disconnected"
    # Unexpected errors: the client gets a short one in its protocol, the log has the traceback.
    except Exception:
        log.exception("%s %s failed", asked.method, asked.path)
        if out.begun:
            raise  # uvicorn then closes the connection: half a response must not look complete
        await out.answer(
            fail(RequestError(message="the server failed to handle this request; see its log", status=500))
        )
    finally:
        leaving.stop()
    return ""
