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

from forge.backends import Backend, Options, named
from forge.backends.address import AsNamed
from forge.cli.console import Console, printable, readable
from forge.cli.options import key_of
from forge.cli.signals import handling
from forge.errors import ForgeError, quantity, to_install
from forge.proxy.passage import Notes, Passage, actions, client_name, summary_line
from forge.runtime.log import JsonFormatter
from stages.options import OptionError
from stages.wire.deltas import Sampling

if TYPE_CHECKING:
    from forge.proxy import ProxyOptions, ProxyServer


# Rows of `forge proxy` in a terminal: a request each, and the totals below them.

_PROTOCOLS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}

_STYLES = {
    "clean": "green",
    "repaired": "cyan",
    "retried": "yellow",
    "exhausted": "bold red",
    "refused": "bold red",
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


def heading(width: int) -> Text:
    """The names of the columns."""
    names = ("time", "client", "protocol", "model", "in", "out", "outcome", "tries", "ms", "what forge did")
    return Text(_columns(names, width) + names[-1], style="bold")


def row(passage: Passage, width: int) -> Text:
    """One request."""
    notes = passage.notes
    protocol = _PROTOCOLS.get(passage.path, f"{passage.method} {passage.path}")
    tokens = (f"{notes.usage.prompt:,}", f"{notes.usage.completion:,}") if notes.usage else ("", "")
    tries = str(notes.attempts) if notes.outcome else ""
    clock = time.strftime("%H:%M:%S", time.localtime(passage.at))
    cells = (clock, client_name(passage), protocol, notes.model, *tokens, _ending(passage), tries, f"{_ms(passage)}")
    text = Text(_columns(tuple(printable(cell, 40) for cell in cells), width), no_wrap=True, overflow="ellipsis")
    text.append(printable(_did(notes)))
    if (style := _STYLES.get(notes.outcome)) is not None:
        text.highlight_words([_ending(passage)], style)
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


def _ending(passage: Passage) -> str:
    """How it ended: the outcome, with the status where that is none of success."""
    outcome = passage.notes.outcome
    return outcome if outcome and passage.status < 400 else f"{outcome} {passage.status}".strip()


def _ms(passage: Passage) -> str:
    return f"{passage.seconds * 1000:,.0f}"


def _did(notes: Notes) -> str:
    return "; ".join(actions(notes))


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
        console.print(heading(console.width), no_wrap=True, overflow="ellipsis")
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
            self._tell(_plain_lines(), Load(0, 0))
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


def _page(*, plain: bool, log_format: str | None) -> Callable[[], Page]:
    """The terminal's page; plain lines, or JSON, where they are wanted, or standard error is no capable terminal."""
    if log_format == "json":
        return lambda: JsonLines(sys.stderr)
    console = Console(stderr=True)
    if plain or log_format or console.no_color or not console.is_terminal or console.is_dumb_terminal:
        return _plain_lines
    return _table


def _table() -> Table:
    """The table on standard error."""
    return Table(Console(stderr=True))


def _plain_lines() -> PlainLines:
    """Plain lines on standard error."""
    return PlainLines(sys.stderr)


def _clock(passage: Passage | None = None) -> str:
    return time.strftime("%H:%M:%S", time.localtime(passage.at if passage else None))


# `forge proxy`: serve a backend to any client until a signal comes.

log = logging.getLogger("forge.proxy")


def run_proxy(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; the second one cuts off what is under way."""
    if missing := [name for name in ("httptools", "uvicorn") if find_spec(name) is None]:
        raise ForgeError(
            f"the proxy needs {' and '.join(missing)}, which {'are' if missing[1:] else 'is'} not installed here; "
            + to_install("proxy")
        )

    with Display() as display, asyncio.Runner(loop_factory=_loop()) as runner:
        for name in ("forge.proxy", "uvicorn"):
            handler = ToDisplay(display)
            if options.log_format == "json":
                handler.setFormatter(JsonFormatter())
            logging.getLogger(name).addHandler(handler)
            logging.getLogger(name).propagate = False
        log.setLevel(logging.INFO)
        page = _page(plain=options.plain, log_format=options.log_format)
        return runner.run(_serve(_backend(options), _options(options), display, page))


def _loop() -> "type[asyncio.AbstractEventLoop] | None":
    """The loop of uvloop, where it is installed: it halves what a request costs."""
    if find_spec("uvloop") is None:
        return None
    import uvloop  # noqa: PLC0415 - not on every platform

    return uvloop.Loop


async def _serve(backend: Backend, options: "ProxyOptions", display: "Display", page: Callable[[], Page]) -> int:
    from forge.proxy import ProxyServer  # noqa: PLC0415 - an extra

    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(ProxyServer(backend, options, display))
        code = 0
        loop = asyncio.get_running_loop()

        def stop(number: int, _: FrameType | None) -> None:
            nonlocal code
            again, code = bool(code), 128 + number
            loop.call_soon_threadsafe(_stop, proxy, display, None if again else options.grace)

        if isinstance(options.policy, Path) and hasattr(signal, "SIGHUP"):
            loop.add_signal_handler(signal.SIGHUP, _reload, proxy)
        with handling(stop):
            print(_ready(proxy), flush=True)
            display.start(page, lambda: Load(*proxy.load), 0.2 if page is _table else None)
            await proxy.stopped()
            await stack.aclose()  # while signals are still handled: the second cuts off
    return code


def _stop(proxy: "ProxyServer", display: "Display", grace: float | None) -> None:
    """Stop, and say what is waited for; without a time of grace, for nothing."""
    under_way = sum(proxy.load)
    proxy.stop()
    if under_way and grace is None:
        display(f"stopped; {quantity(under_way, 'request')} cut off")
    elif under_way and grace is not None:
        said = f"waiting up to {grace:g} seconds for {quantity(under_way, 'request')}; a second Ctrl-C cuts off"
        display(f"stopping: {said}")


def _reload(proxy: "ProxyServer") -> None:
    """Read the policy again; one with faults is told in the log, and changes nothing."""
    try:
        proxy.reload()
    except ForgeError as error:
        log.error("the policy stays as it was: %s", error)  # noqa: TRY400 - the sentence says it all
    else:
        log.info("the policy was read again")


def _ready(proxy: "ProxyServer") -> str:
    return f"forge proxy: OpenAI clients {proxy.url}/v1, Anthropic clients {proxy.url}"


def _backend(options: argparse.Namespace) -> Backend:
    given: Options = {
        "mode": options.mode,
        "context_tokens": options.context,
        "sampling": None if options.temperature is None else Sampling(temperature=options.temperature),
        "api_key": key_of(options.backend_api_key_env),
        "probe": options.probe,
        "timeout": options.timeout,
    }
    if options.backend == "local":
        given = {"mode": options.mode, "context_tokens": options.context, "sampling": given["sampling"]}
    return AsNamed(named(options.backend, options.model, profile=options.profile, **given))


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
            body_limit=options.body_limit * 1024 * 1024,
            grace=options.grace,
            api_key=key_of(options.api_key_env),
            insecure=options.insecure,
            origins=tuple(options.origin),
            policy=options.policy or Policy(),
        )
    except OptionError as error:
        said = "; ".join(problem.removeprefix("ProxyOptions: ") for problem in error.problems)
        raise ForgeError(said) from None
