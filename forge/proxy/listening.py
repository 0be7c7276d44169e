"""Listening: the socket of the proxy, and the server of HTTP on it, which is uvicorn."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import uvicorn

from forge.errors import ForgeError
from forge.proxy.app import App
from forge.proxy.gathering import GatheringProtocol
from forge.proxy.options import ProxyOptions

_BACKLOG = 512
"""Connections that wait to be accepted."""


@contextlib.contextmanager
def listening_socket(options: ProxyOptions) -> Iterator[socket.socket]:
    """A socket that listens."""
    host = options.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol said, for asyncio sends small packets at once (TCP_NODELAY) on no other sockets.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, options.port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        other = "; choose another port, or 0 for any free one" if error.errno == errno.EADDRINUSE else ""
        raise ForgeError(f"cannot listen on {options.host}:{options.port}: {error.strerror or error}{other}") from None
    with made:
        yield made


def url_of(listening: socket.socket) -> str:
    """The address of that socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HttpServer(uvicorn.Server):
    """uvicorn without handlers of signals, which are the program's; `ready` is set when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


@asynccontextmanager
async def running(app: App, listening: socket.socket, options: ProxyOptions) -> AsyncIterator[HttpServer]:
    """The server of that application, from when it answers until it has stopped."""

    class Protocol(GatheringProtocol):
        """The protocol with the times of the options: uvicorn makes it, and hands none on."""

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
    server = HttpServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await server.ready.wait()
        yield server
    finally:
        server.should_exit = True
        await serving
