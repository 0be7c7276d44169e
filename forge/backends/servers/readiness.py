"""Wait until a server is ready: polled with back-off, with progress reports and a time-out."""

import asyncio
import socket
import time
from collections.abc import Callable

import httpx
from msgspec import Struct

from forge.backends.http_client import client
from forge.backends.servers.exit_report import explain_exit
from forge.backends.servers.launch import HOST
from forge.backends.servers.process import Process
from forge.errors import BackendError

FIRST, LONGEST = 0.02, 0.5
"""Seconds between two polls: the first, and the maximum."""

_QUIET = 2.0
"""Seconds between two progress reports, and before the first."""


class Loading(Struct, frozen=True, kw_only=True):
    """A server that is not ready after so many seconds, and the last line that it printed."""

    seconds: float
    said: str


class Died(BackendError):  # noqa: N818 - what happened is in the name
    """The server ended before it was ready; the message says what it printed last, and what usually helps."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


Tell = Callable[[Loading], None]


async def until_ready(
    process: Process, program: str, url: str, *, load_timeout: float, tell: Tell, secrets: tuple[str, ...] = ()
) -> None:
    """Return when /health says 200. Died if the server ends first, BackendError after `load_timeout` seconds."""
    began = time.monotonic()
    told, pause = began, FIRST
    async with client(url, timeout=_QUIET) as http:
        while not await _healthy(http, url):
            if (code := process.code) is not None:
                said = process.tail(secrets)
                raise Died(explain_exit(program, code, said, process.log), code)
            now = time.monotonic()
            if now - began > load_timeout:
                printed = "\n".join(f"  | {line}" for line in process.tail(secrets))
                raise BackendError(
                    f"{program} is not ready after {load_timeout:.0f} seconds; it was stopped. If it only needs "
                    f"longer, say load_timeout=…\nIts log: {process.log}\nIt said:\n{printed}"
                )
            if now - told > _QUIET:
                told = now
                tell(Loading(seconds=now - began, said=next(iter(process.tail(secrets)[-1:]), "")))
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST)


async def _healthy(http: httpx.AsyncClient, url: str) -> bool:
    try:
        # Only the status counts: a server that loads a model answers 503.
        async with asyncio.timeout(_QUIET), http.stream("GET", f"{url}/health") as response:
            return response.status_code == httpx.codes.OK
    except (httpx.HTTPError, TimeoutError):
        return False


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
