"""What passes through `forge proxy`, shown from a thread of its own: output that nobody takes holds up no request."""

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, Self, TextIO

from rich.live import Live
from rich.text import Text

from forge.cli.console import Console
from forge.cli.plain import readable
from forge.cli.proxy_rows import Load, Totals, footer, heading, row
from forge.proxy.passage import Passage, summary_line

INTERVAL = 0.2
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
            self._tell(plain_lines(), Load(0, 0))
        else:
            self._thread.join(1.0)

    def _run(self, page: Callable[[], Page], load: Callable[[], Load], idle: float | None) -> None:
        shown = page()
        try:
            while not self._over.is_set():
                self._something.wait(idle)
                self._tell(shown, load())
                self._over.wait(INTERVAL)
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


def terminal_page(*, plain: bool) -> Callable[[], Page] | None:
    """The terminal's page; None where plain lines are wanted, or standard error is no capable terminal."""
    console = Console(stderr=True)
    if plain or console.no_color or not console.is_terminal or console.is_dumb_terminal:
        return None
    return lambda: Table(console)


def plain_lines() -> PlainLines:
    """Plain lines on standard error."""
    return PlainLines(sys.stderr)


def _clock(passage: Passage | None = None) -> str:
    return time.strftime("%H:%M:%S", time.localtime(passage.at if passage else None))
