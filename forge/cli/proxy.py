"""`forge proxy`: runs the proxy, and prints a line per request."""

import argparse
import asyncio
import logging
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import msgspec

from forge.backends import Backend
from forge.cli.console import Console, readable
from forge.cli.options import backend_of, options_of
from forge.cli.progress import downloading
from forge.cli.signals import Stopping, handling
from forge.errors import ForgeError, quantity
from forge.proxy.options import ProxyOptions
from forge.proxy.passage import Passage, client_name, summary_line
from forge.runtime.log import JsonFormatter

# Requests are displayed by a separate thread, so that blocked output delays no request, and all of an interval at once:
# with a QueueHandler, QueueListener and a record each, a request took 40 us more of processor time, of about 170.

_INTERVAL = 0.2
"""Seconds between two updates."""

KEPT = 2000
"""Maximum passages to queue for display; beyond that, the oldest are dropped."""

Shown = Passage | str
"""What to display: a finished request, or a message."""


_Lines = Callable[[list[Shown], int], Iterator[str]]
"""Formats what to display as lines; the number is how many were dropped before."""


def plain_lines(shown: list[Shown], missed: int) -> Iterator[str]:
    """One line for each request and message."""
    if missed:
        yield f"({quantity(missed, 'request')} not shown)"
    yield from (
        f"{_clock(one)} {summary_line(one)}" if isinstance(one, Passage) else f"{_clock()} {one}" for one in shown
    )


def json_lines(shown: list[Shown], missed: int) -> Iterator[str]:
    """One line of JSON for each request; messages already are JSON."""
    if missed:
        yield f'{{"message":"{quantity(missed, "request")} not shown"}}'
    yield from (_json(one) if isinstance(one, Passage) else one for one in shown)


def _json(passage: Passage) -> str:
    """The request as a log entry: what was done, never what was said."""
    told: dict[str, object] = {
        "time": datetime.fromtimestamp(passage.at, UTC).isoformat(timespec="milliseconds"),
        "level": "INFO",
        "logger": "forge.proxy",
        "message": summary_line(passage),
        "method": passage.method,
        "path": passage.path,
        "status": passage.status,
        "seconds": round(passage.seconds, 6),
        "client": client_name(passage),
        **msgspec.structs.asdict(passage.notes),
    }
    return msgspec.json.encode({name: value for name, value in told.items() if value}).decode()


class Display:
    """Displays passages; callers only spend a microsecond."""

    def __init__(self) -> None:
        self._waiting: deque[Shown] = deque(maxlen=KEPT)
        self._missed = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, shown: Shown) -> None:
        """Queue it for display."""
        self._missed += len(self._waiting) == KEPT
        self._waiting.append(shown)

    def start(self, lines: _Lines) -> None:
        """Start displaying."""
        self._thread = threading.Thread(target=self._run, args=(lines,), name="display", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """The display; the thread starts later, with `start`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Display the rest, waiting at most one second for a blocked terminal."""
        self._over.set()
        if self._thread is None:
            self._tell(plain_lines)
        else:
            self._thread.join(1.0)

    def _run(self, lines: _Lines) -> None:
        while not self._over.wait(_INTERVAL):
            self._tell(lines)
        self._tell(lines)

    def _tell(self, lines: _Lines) -> None:
        missed, self._missed = self._missed, 0
        told = [*lines([self._waiting.popleft() for _ in range(len(self._waiting))], missed)]
        if told:
            sys.stderr.write("\n".join([*told, ""]))
            sys.stderr.flush()


class ToDisplay(logging.Handler):
    """Passes log records to the display."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Display the record without control characters, which paths and tool names may contain."""
        self._display(readable(self.format(record)))


def _clock(passage: Passage | None = None) -> str:
    return time.strftime("%H:%M:%S", time.localtime(passage.at if passage else None))


# `forge proxy`: serve a backend to clients until a signal arrives.

_log = logging.getLogger("forge.proxy")


def run_proxy(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; a second signal aborts open requests."""
    loop = None
    if find_spec("uvloop") is not None:  # not available on every platform; it halves the cost of a request
        import uvloop  # noqa: PLC0415

        loop = uvloop.Loop
    with (
        Display() as display,
        downloading(Console(stderr=True)) as progress,
        asyncio.Runner(loop_factory=loop) as runner,
    ):
        for name in ("forge.proxy", "uvicorn"):
            handler = ToDisplay(display)
            if options.log_format == "json":
                handler.setFormatter(JsonFormatter())
            logging.getLogger(name).addHandler(handler)
            logging.getLogger(name).propagate = False
        _log.setLevel(logging.INFO)
        return runner.run(
            _serve(backend_of(options, progress), options_of(ProxyOptions, options), display, options.log_format)
        )


async def _serve(backend: Backend, options: ProxyOptions, display: Display, log_format: str | None) -> int:
    from forge.proxy import ProxyServer  # noqa: PLC0415 - an extra

    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(ProxyServer(backend, options, display))

        def end(told: str) -> None:
            under_way = sum(proxy.load)
            proxy.stop()
            if under_way:
                _log.info(told, quantity(under_way, "request"))

        def reload() -> None:
            try:
                proxy.reload()
            except ForgeError as error:  # the previous policy stays in force
                _log.error("the policy is unchanged: %s", error)
            else:
                _log.info("the policy was reloaded")

        if isinstance(options.policy, Path) and hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)

        def wait() -> None:
            end(f"stopping: waiting up to {quantity(options.grace, 'second')} for %s; {stop.again}")

        stop = Stopping(wait, partial(end, "stopped; %s aborted"))
        with handling(stop):
            print(f"forge proxy: OpenAI clients {proxy.url}/v1, Anthropic clients {proxy.url}", flush=True)
            display.start(json_lines if log_format == "json" else plain_lines)
            await proxy.stopped()
            await stack.aclose()  # while signals are still handled: a second one aborts
    return stop.code
