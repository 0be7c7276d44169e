"""`forge proxy`: the proxy started, and its requests shown as rows."""

import argparse
import asyncio
import logging
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

import msgspec
from msgspec import Struct
from rich.live import Live
from rich.text import Text

from forge.backends import Backend
from forge.cli.console import Console, printable, readable
from forge.cli.options import backend_of, key_of
from forge.cli.progress import downloading
from forge.cli.signals import handling
from forge.errors import ForgeError, quantity, to_install
from forge.proxy.passage import Passage, actions, client_name, summary_line
from forge.runtime.log import JsonFormatter
from stages.options import OptionError

if TYPE_CHECKING:
    from forge.proxy import ProxyOptions


# Rows of `forge proxy` in a terminal: a request each, and the totals below them.

_PROTOCOLS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}

_STYLES = {
    "clean": "green",
    "repaired": "cyan",
    "retried": "yellow",
    "exhausted": "bold red",
    "error": "bold red",
}

_WITH_CLIENT, _WITH_MODEL = 100, 130
"""Terminal widths from which there is room for these columns, beside what forge did."""


class Load(Struct, frozen=True):
    """Requests at the backend, and those in the queue."""

    working: int
    waiting: int


class Totals(Struct, frozen=True):
    """What was served so far; `outcomes` by name, in the order in which they first came."""

    requests: int = 0
    outcomes: tuple[tuple[str, int], ...] = ()
    prompt: int = 0
    completion: int = 0

    def with_passage(self, passage: Passage) -> "Totals":
        """The totals with one request more."""
        notes = passage.notes
        counts = dict(self.outcomes)
        if notes.outcome:
            counts[notes.outcome] = counts.get(notes.outcome, 0) + 1
        used = (notes.usage.prompt, notes.usage.completion) if notes.usage else (0, 0)
        return Totals(self.requests + 1, tuple(counts.items()), self.prompt + used[0], self.completion + used[1])


_HEADING = ("time", "client", "protocol", "model", "in", "out", "outcome", "tries", "ms", "what forge did")


def row(passage: Passage, width: int) -> Text:
    """One request."""
    notes = passage.notes
    protocol = _PROTOCOLS.get(passage.path, f"{passage.method} {passage.path}")
    tokens = (f"{notes.usage.prompt:,}", f"{notes.usage.completion:,}") if notes.usage else ("", "")
    tries = str(notes.attempts) if notes.outcome else ""
    took = f"{passage.seconds * 1000:,.0f}"
    # How it ended: the outcome, with the status where that is none of success.
    status = "" if notes.outcome and passage.status < 400 else f" {passage.status}"
    ended = f"{notes.outcome}{status}".strip()
    cells = (_clock(passage), client_name(passage), protocol, notes.model, *tokens, ended, tries, took)
    text = Text(_columns(tuple(printable(cell, 40) for cell in cells), width), no_wrap=True, overflow="ellipsis")
    text.append(printable("; ".join(actions(notes))))
    if (style := _STYLES.get(notes.outcome)) is not None:
        text.highlight_words([ended], style)
    else:
        text.stylize("dim")
    return text


def footer(totals: Totals, load: Load, width: int) -> Text:
    """The totals, and what is under way; with room for the ^C that the terminal writes behind it."""
    outcomes = "".join(f", {number:,} {name}" for name, number in totals.outcomes)
    tokens = f"tokens {totals.prompt:,} in, {totals.completion:,} out"
    under_way = f"{load.working} at work, {load.waiting} waiting"
    text = Text(f"{under_way} | {quantity(totals.requests, 'request')}{outcomes} | {tokens}", style="reverse")
    text.truncate(max(1, width - 3), overflow="ellipsis")
    return text


def _columns(cells: tuple[str, ...], width: int) -> str:
    clock, who, protocol, model, prompt, completion, outcome, tries, took = cells[:9]
    wide = f"{who:<16.16} " if width >= _WITH_CLIENT else ""
    named = f"{model:<16.16} " if width >= _WITH_MODEL else ""
    counts = f"{prompt:>7.7} {completion:>6.6}  {outcome:<10.10} {tries:>5.5} {took:>7.7}"
    return f"{clock:<8.8}  {wide}{protocol:<12.12} {named}{counts}  "


# What passes through `forge proxy`, shown from a thread of its own: output that nobody takes holds up no request.

_INTERVAL = 0.2
"""Seconds between two looks at what there is to show."""

KEPT = 2000
"""Passages that wait to be shown; of more, the oldest are left out."""

_AT_ONCE = 40
"""Rows in a terminal at a time: nobody can read more."""

Shown = Passage | str
"""What is shown: a request that is over, or a message."""


class Page(Protocol):
    """Where passages are shown."""

    def show(self, shown: list[Shown], missed: int, load: Load) -> None:
        """Show these, and how many were left out before them."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class PlainLines:
    """Plain lines, for a pipe or a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def show(self, shown: list[Shown], missed: int, _: Load) -> None:
        """Write a line for each, all at once."""
        lines = [f"({missed} requests are left out here)"] if missed else []
        lines += [
            f"{_clock(one)} {summary_line(one)}" if isinstance(one, Passage) else f"{_clock()} {one}" for one in shown
        ]
        if lines:
            self._file.write("\n".join([*lines, ""]))
            self._file.flush()

    def close(self) -> None:
        """Nothing to restore."""


class JsonLines(PlainLines):
    """A line of JSON for each request and message."""

    def show(self, shown: list[Shown], missed: int, _: Load) -> None:
        """Write a line for each, all at once."""
        lines = [f'{{"message":"{missed} requests are left out here"}}'] if missed else []
        lines += [_json(one) if isinstance(one, Passage) else one for one in shown]
        if lines:
            self._file.write("\n".join([*lines, ""]))
            self._file.flush()


def _json(passage: Passage) -> str:
    """The request as a log has it: what was done, never what was said."""
    notes = passage.notes
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
        "model": notes.model,
        "outcome": notes.outcome,
        "attempts": notes.attempts,
        "usage": notes.usage,
        "rescued": notes.rescued,
        "refused": notes.refused,
        "compacted": notes.compacted,
    }
    return msgspec.json.encode({name: value for name, value in told.items() if value}).decode()


class Table:
    """Rows that scroll in a terminal, above a line of totals that stays."""

    def __init__(self, console: Console) -> None:
        self._console, self._totals, self._load = console, Totals(), Load(0, 0)
        heading = Text(_columns(_HEADING, console.width) + _HEADING[-1], style="bold")
        console.print(heading, no_wrap=True, overflow="ellipsis")
        self._live = Live(footer(self._totals, self._load, console.width), console=console, auto_refresh=False)
        self._live.start(refresh=True)

    def show(self, shown: list[Shown], missed: int, load: Load) -> None:
        """Print the rows, and the totals anew where they have changed."""
        if not shown and load == self._load:
            return
        for one in shown:
            self._totals = self._totals.with_passage(one) if isinstance(one, Passage) else self._totals
        left, self._load = missed + max(0, len(shown) - _AT_ONCE), load
        rows = [Text(f"({left:,} more are not shown)", style="dim")] if left else []
        rows += [row(one, self._console.width) if isinstance(one, Passage) else Text(one) for one in shown[-_AT_ONCE:]]
        if rows:
            self._console.print(*rows, sep="\n", no_wrap=True, overflow="ellipsis")
        self._live.update(footer(self._totals, load, self._console.width), refresh=True)

    def close(self) -> None:
        """Leave the totals where they are; the cursor is back."""
        self._live.stop()


class Display:
    """Shows passages; called by those who serve them, which takes a microsecond."""

    def __init__(self) -> None:
        self._waiting: deque[Shown] = deque(maxlen=KEPT)
        self._missed = 0
        self._something, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, shown: Shown) -> None:
        """Have it shown soon."""
        self._missed += len(self._waiting) == KEPT
        self._waiting.append(shown)
        if not self._something.is_set():
            self._something.set()

    def start(self, page: Callable[[], Page], load: Callable[[], Load], idle: float | None) -> None:
        """Show from now on; with `idle`, the load is looked at that often though nothing passes."""
        self._thread = threading.Thread(target=self._run, args=(page, load, idle), name="display", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """It is started when there is something to show."""
        return self

    def __exit__(self, *_: object) -> None:
        """Show what is left. A terminal that takes nothing is waited for a second."""
        self._over.set()
        self._something.set()
        if self._thread is None:
            self._tell(PlainLines(sys.stderr), Load(0, 0))
        else:
            self._thread.join(1.0)

    def _run(self, page: Callable[[], Page], load: Callable[[], Load], idle: float | None) -> None:
        shown = page()
        try:
            while not self._over.is_set():
                self._something.wait(idle)
                self._tell(shown, load())
                self._over.wait(_INTERVAL)
            self._tell(shown, load())
        finally:
            shown.close()

    def _tell(self, page: Page, load: Load) -> None:
        self._something.clear()
        missed, self._missed = self._missed, 0
        page.show([self._waiting.popleft() for _ in range(len(self._waiting))], missed, load)


class ToDisplay(logging.Handler):
    """Log records on the same display."""

    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Show it, without what could control a terminal: paths of requests and names of tools may stand in it."""
        self._display(readable(self.format(record)))


def _clock(passage: Passage | None = None) -> str:
    return time.strftime("%H:%M:%S", time.localtime(passage.at if passage else None))


# `forge proxy`: serve a backend to any client until a signal comes.

log = logging.getLogger("forge.proxy")


def run_proxy(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; the second one cuts off what is under way."""
    if missing := [name for name in ("httptools", "prometheus_client", "uvicorn") if find_spec(name) is None]:
        raise ForgeError(
            f"the proxy needs {', '.join(missing)}, which {'are' if missing[1:] else 'is'} not installed here; "
            + to_install("proxy")
        )
    loop = None
    if find_spec("uvloop") is not None:  # not on every platform; it halves what a request costs
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
        log.setLevel(logging.INFO)
        return runner.run(_serve(backend_of(options, progress), _options(options), display, options.log_format))


async def _serve(backend: Backend, options: "ProxyOptions", display: "Display", log_format: str | None) -> int:
    from forge.proxy import ProxyServer  # noqa: PLC0415 - an extra

    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(ProxyServer(backend, options, display))
        code, loop = 0, asyncio.get_running_loop()

        def stop(number: int, _: FrameType | None) -> None:
            nonlocal code
            again, code = bool(code), 128 + number
            loop.call_soon_threadsafe(end, again)

        def end(again: bool) -> None:
            under_way = sum(proxy.load)
            proxy.stop()
            if under_way:
                cut = quantity(under_way, "request")
                waits = f"stopping: waiting up to {options.grace:g} seconds for {cut}; a second Ctrl-C cuts off"
                display(f"stopped; {cut} cut off" if again else waits)

        def reload() -> None:
            try:
                proxy.reload()
            except ForgeError as error:  # the policy that was in force stays in force
                log.error("the policy stays as it was: %s", error)  # noqa: TRY400 - the sentence says it all
            else:
                log.info("the policy was read again")

        if isinstance(options.policy, Path) and hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, reload)
        with handling(stop):
            print(f"forge proxy: OpenAI clients {proxy.url}/v1, Anthropic clients {proxy.url}", flush=True)
            console = Console(stderr=True)
            if log_format == "json":
                display.start(lambda: JsonLines(sys.stderr), lambda: Load(*proxy.load), None)
            elif log_format or console.no_color or not console.is_terminal or console.is_dumb_terminal:
                display.start(lambda: PlainLines(sys.stderr), lambda: Load(*proxy.load), None)
            else:
                display.start(lambda: Table(console), lambda: Load(*proxy.load), 0.2)
            await proxy.stopped()
            await stack.aclose()  # while signals are still handled: the second cuts off
    return code


def _options(options: argparse.Namespace) -> "ProxyOptions":
    from forge.proxy import Policy, ProxyOptions  # noqa: PLC0415 - an extra

    try:
        return ProxyOptions(
            host=options.host,
            port=options.port,
            max_retries=options.max_retries,
            rescue=options.rescue,
            slots=options.slots,
            queue=options.queue,
            grace=options.grace,
            api_key=key_of(options.api_key_env),
            insecure=options.insecure,
            origins=tuple(options.origin),
            policy=options.policy or Policy(),
        )
    except OptionError as error:
        said = "; ".join(problem.removeprefix("ProxyOptions: ") for problem in error.problems)
        raise ForgeError(said) from None
