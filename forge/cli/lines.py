"""Prints a run as it happens, in a terminal or a pipe. `rows.py` has the texts of the rows."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.text import Text

from forge.cli.console import Console, LabelledText, printable
from forge.cli.rows import rows, shortened
from forge.cli.status import Screen, after, under_way
from stages import events
from stages.wire.deltas import Delta

_TAIL = 60
"""Characters shown of an arriving answer."""


class View:
    """Prints the events of a run; `live`: model calls take time, so show in a status line what is in progress.

    `turns` is the number of model calls so far.
    """

    def __init__(self, console: Console, *, live: bool = True) -> None:
        self.console = console
        self._live = live
        self._status = console.status(self, spinner="line" if console.options.ascii_only else "dots")
        self._connecting = ""
        self._screen = Screen()
        self.turns = 0

    def stopping(self, again: str) -> None:
        """Print that the run is being cancelled, which may take a while if a tool is running; `again` aborts it."""
        if self.console.is_terminal:
            self.console.print()  # the terminal has echoed ^C
        self.console.show(LabelledText("stop", f"cancelling; {again}", label_style="yellow"))

    @contextmanager
    def connecting(self, where: str) -> Iterator[None]:
        """In a terminal, show that the server is being examined: it may be loading its model."""
        self._connecting = f"connecting to {where}"
        self._status.start()
        try:
            yield
        finally:
            self._status.stop()

    def stream(self, _: Delta) -> None:
        """An `on_chunk` that only turns streaming on; deltas also arrive as events."""

    def __call__(self, stamped: events.Stamped) -> None:
        """Print one event; events of nested agents are left out, because their result shows up as a tool's."""
        event = stamped.event
        if stamped.parent:
            return
        self._screen = after(self._screen, stamped)
        if isinstance(event, events.TurnStarted):
            self.turns = event.turn
            room = f" of {event.context_tokens:,}" if event.context_tokens else ""
            facts = f"   prompt about {event.prompt_tokens:,}{room} tokens, model calls left: {event.calls_left}"
            heading = Text.assemble((f"turn {event.turn}", "bold"), (facts, "dim"))
            self.console.print(heading, soft_wrap=not self.console.is_terminal)
        # A run that is resumed may do more before it needs its model.
        if not isinstance(event, events.RunStarted | events.MessageAdded):
            self._connecting = ""
        # Only while a server is waited for: tools print, and questions are asked, where the spinner would be.
        if self._connecting or (self._live and self._screen.asked):
            self._status.start()
        else:
            self._status.stop()
        for row in rows(event):
            self.console.show(shortened(row))

    def __rich__(self) -> Text:
        """The status line, whenever the spinner is drawn."""
        now, words = under_way(self._screen)
        said = f": {printable(words[-_TAIL:])}" if words else ""
        return Text(f"{self._connecting or now}{said} …", style="dim", no_wrap=True, overflow="ellipsis")
