"""Listening: a socket with uvicorn on it, and the limits that uvicorn lacks.

uvicorn limits neither the size of a request's head nor the time that it takes, and waits forever for a client that
reads nothing. It writes a response's head and body separately, and a chunk of a backend's stream may hold many events:
each write is a system call, a tenth of a request's total cost. So the protocol here adds limits, and everything written
in one iteration of the event loop is sent at once.
"""

import asyncio
import contextlib
import errno
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from forge.door.asgi import AsgiSend, Receive, Scope
from forge.door.options import Listening
from forge.errors import ForgeError

Application = Callable[[Scope, Receive, AsgiSend], Awaitable[None]]


_BACKLOG = 512
"""Maximum connections waiting to be accepted."""


_HEAD_LIMIT = 64 * 1024
"""Maximum bytes of a request apart from its body: head, trailers and chunk framing."""

_LINGER = 1.0
"""Seconds that a refused client has to read the error: closing the connection at once could lose it."""


class _GatheringProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits, on a transport that batches writes. The times are those of Listening."""

    request_timeout: float
    stall_timeout: float

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        self._gathering = _Gathering(transport, self.loop, self.stall_timeout)
        super().connection_made(self._gathering)
        self._bare, self._in_body, self._refused = 0, False, False
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(self.request_timeout, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass no more of a head to the parser than the limit allows."""
        while data and not (self._refused or self.transport.is_closing()):
            room = _HEAD_LIMIT - self._bare
            if not room:
                self._refuse(b"431 Request Header Fields Too Large", f"the request head exceeds {_HEAD_LIMIT} bytes")
                return
            part, data = data[:room], data[room:]
            self._bare += len(part)
            super().data_received(part)
        if (self._bare or self._in_body) and self._timer is None and not self._refused:
            self._timer = self.loop.call_later(self.request_timeout, self._late)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._bare, self._in_body = 0, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._stop_timer()
        self._bare = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stop_timer()
        self._bare, self._in_body = 0, False
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._gathering.watch()

    def _late(self) -> None:
        """Close a connection whose request takes too long; an idle one is closed without an error."""
        self._timer = None
        if self.pipeline or not (self._in_body or self.cycle is None or self.cycle.response_complete):
            # Some clients send an extra line break after a body: no reason to cut off the response.
            self._timer = self.loop.call_later(self.request_timeout, self._late)
        elif self._bare or self._in_body:
            what = "body stalled for" if self._in_body else "head took longer than"
            self._refuse(b"408 Request Timeout", f"the request {what} {self.request_timeout:g} seconds")
        else:
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: bytes, why: str) -> None:
        """Close the connection, with an error if the client cannot mistake it for another request's response."""
        self.logger.warning("%s", why)
        self._refused, cycle = True, self.cycle
        if self._in_body and not (self.pipeline or cycle.response_started):
            cycle.disconnected = True  # so that nothing waits for the rest of the body
            cycle.message_event.set()
        elif self._in_body or not (cycle is None or cycle.response_complete):
            self.transport.close()
            return
        head = b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self.transport.write(head % (status, len(why)) + why.encode())
        self.transport.write_eof()
        self.loop.call_later(_LINGER, self.transport.close)


class _Gathering(asyncio.Transport):
    """A transport that batches the writes of one event loop iteration, and aborts if the client reads nothing."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        super().__init__()
        self._transport, self._loop, self._patience = transport, loop, patience
        self._written: list[bytes | bytearray | memoryview] = []
        self._sent = self._taken = 0
        self._watching = False

    def watch(self) -> None:
        """Abort the connection once the client has read nothing for `patience` seconds while data is waiting."""
        if not self._watching:
            self._watching, self._taken = True, self._sent - self._transport.get_write_buffer_size()
            self._loop.call_later(self._patience, self._look)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._written:
            self._loop.call_soon(self._flush)
        self._written.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self.watch()

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def _flush(self) -> None:
        if self._written:
            joined = b"".join(self._written)
            self._written = []
            self._sent += len(joined)
            self._transport.write(joined)

    def _look(self) -> None:
        self._watching = False
        waiting = self._transport.get_write_buffer_size()
        if waiting and self._sent - waiting == self._taken:
            self._transport.abort()
        elif waiting:
            self.watch()


@contextlib.contextmanager
def _bound_socket(options: Listening) -> Iterator[socket.socket]:
    """A socket with the address, which does not listen yet. ForgeError for an address that cannot be had."""
    host = options.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol: asyncio sets TCP_NODELAY only on such sockets.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with made:
        with _refused(options):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, options.port))
        yield made


@contextlib.contextmanager
def _refused(options: Listening) -> Iterator[None]:
    """Turn the system's refusal of the address into a ForgeError."""
    try:
        yield
    except OSError as error:
        other = "; choose another port, or 0 for any free port" if error.errno == errno.EADDRINUSE else ""
        raise ForgeError(f"cannot listen on {options.host}:{options.port}: {error.strerror or error}{other}") from None


def _url_of(listening: socket.socket) -> str:
    """The URL of that socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _HttpServer(uvicorn.Server):
    """uvicorn without signal handlers, which are up to the program. `ready` is set once it accepts requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start listening."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


@contextlib.asynccontextmanager
async def _running(app: Application, listening: socket.socket, options: Listening) -> AsyncIterator[_HttpServer]:
    """Serve the application while the context is open."""

    class Protocol(_GatheringProtocol):
        """The protocol with the options' times: uvicorn instantiates it and passes nothing on."""

        request_timeout, stall_timeout = options.request_timeout, options.stall_timeout

    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        http=Protocol,
        ws="none",
        loop="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(options.grace)),
        backlog=_BACKLOG,
    )
    server = _HttpServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await server.ready.wait()
        yield server
    finally:
        server.should_exit = True
        await serving


class AppServer(ABC):
    """An application behind HTTP, as an async context. `url` is its address once the block is entered."""

    def __init__(self, options: Listening) -> None:
        self._listening = options
        self._open = AsyncExitStack()
        self._stopping = asyncio.Event()
        self._server: _HttpServer | None = None
        self.url = ""

    @abstractmethod
    async def _application(self, opening: AsyncExitStack) -> Application:
        """The application; what it needs is entered into `opening`, and left when the server has stopped."""

    async def __aenter__(self) -> Self:
        """Bind the address, then open what the application needs, and serve.

        Nobody can connect before that: a client is refused rather than kept waiting while a model loads.
        """
        async with AsyncExitStack() as opening:
            listening = opening.enter_context(_bound_socket(self._listening))
            self.url = _url_of(listening)
            app = await self._application(opening)
            with _refused(self._listening):
                listening.listen(_BACKLOG)
            self._server = await opening.enter_async_context(_running(app, listening, self._listening))
            self._open = opening.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop: requests under way have `grace` seconds to end."""
        self._stopping.set()
        await self._open.__aexit__(kind, error, trace)

    def stop(self) -> None:
        """Accept no more requests; the second time, cut off those under way."""
        if self._server is not None:  # else it is still opening
            self._server.force_exit = self._stopping.is_set()
            self._server.should_exit = True
        self._stopping.set()

    async def stopped(self) -> None:
        """Wait until the server is told to stop."""
        await self._stopping.wait()
