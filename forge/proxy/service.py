"""The endpoints that call the model: requests in any protocol, answered whole or as a stream."""

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from msgspec import Struct

from forge.backends.slot import FullError, Slots
from forge.door.asgi import STOPPING, HttpRequest
from forge.proxy.answering import StreamedAnswer, WholeAnswer, answer_client
from forge.proxy.app import NotedOutlet
from forge.proxy.exchange import exchange_of
from forge.proxy.http_upstream import credential_of, forwarded_of
from forge.proxy.model import Model
from forge.proxy.options import ProxyOptions
from forge.proxy.upstream import Forwarded
from stages.wire.server.errors import RequestError
from stages.wire.server.streams import Envelope
from stages.wire.server_wires import ServerWire

KEEP_ALIVE = 15.0
"""Maximum seconds of silence in a stream: some clients give up after 120."""

BEGIN_AFTER = 2.0
"""Seconds to wait for the backend's status, so that a refusal keeps it; then the stream begins with a ping."""


class Last(Struct, frozen=True):
    """The tokens of the last prompt and reply together, and its time in seconds since 1970."""

    tokens: int
    model: str
    at: float


class Service:
    """Serves a model's requests, limited by its slots."""

    def __init__(self, model: Model, slots: Slots, options: ProxyOptions) -> None:
        self.model, self.slots, self._options = model, slots, options
        self.last: Last | None = None

    async def serve(self, wire: ServerWire, asked: HttpRequest, out: NotedOutlet) -> None:
        """Answer a request in that protocol."""
        forwarded = self.forwarded_of(asked)
        request = wire.decode_request(asked.body)
        if isinstance(request, RequestError):
            await out.refuse(wire, request)
            return
        envelope = Envelope(id=wire.prefix + uuid.uuid4().hex, created=int(time.time()), request=request)
        exchange = exchange_of(wire, envelope, self.model, forwarded)
        if isinstance(exchange, RequestError):
            await out.refuse(wire, exchange)
            return
        out.notes.model = exchange.request.model[:80]
        stream = StreamedAnswer(exchange, out) if exchange.request.stream else None
        try:
            with _pinging(out, stream) if stream else nullcontext():
                async with self.slots.slot(forwarded.key):
                    await answer_client(exchange, stream or WholeAnswer(out), out.notes)
            if usage := out.notes.usage:
                self.last = Last(usage.prompt + usage.completion, exchange.request.model, time.time())
        except FullError as full:
            busy = RequestError(message=f"the server is busy: {full}", status=429, code="server_busy", retry_after=2)
            if stream is not None and out.begun:
                out.notes.problem = busy.message
                await stream.fail(busy, wire.encode_error(busy))
            else:
                await out.refuse(wire, busy)
        except asyncio.CancelledError:
            # If the proxy is stopping, the client is still there and gets the error.
            if stream is not None and out.begun and not out.ended:
                await stream.fail(STOPPING, wire.encode_error(STOPPING))
            raise

    def forwarded_of(self, asked: HttpRequest) -> Forwarded:
        """The credential and headers to forward to the backend."""
        return forwarded_of(asked.headers, self.key_of(asked))

    def key_of(self, asked: HttpRequest) -> str:
        """The credential for the backend: the proxy's, or the client's unless that is the key of the proxy."""
        if self._options.backend_api_key or self._options.api_key:
            return self._options.backend_api_key
        return credential_of(asked.headers)


@contextmanager
def _pinging(out: NotedOutlet, stream: StreamedAnswer) -> Iterator[None]:
    """Ping the stream whenever it has been silent for too long, until the block ends."""

    async def ping() -> None:
        wait = BEGIN_AFTER
        while True:
            await asyncio.sleep(wait)
            wait = out.written + (KEEP_ALIVE if out.begun else BEGIN_AFTER) - time.monotonic()
            if wait <= 0:
                await stream.ping()
                wait = KEEP_ALIVE

    pinging = asyncio.create_task(ping())
    try:
        yield
    finally:
        pinging.cancel()
