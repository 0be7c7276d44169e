"""A run in a terminal: a few lines per turn as it happens; plain lines in a pipe."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from rich.console import Console
from rich.text import Text

from forge.cli.layout import LabelledText, show
from forge.cli.lines import rows
from forge.cli.plain import printable
from stages import events
from stages.message import ToolCall
from stages.wire.deltas import CallDelta, CallStarted, Delta, Ended, ReasoningDelta, Reclassified, Retry, TextDelta

_TAIL = 60
"""Characters shown of an arriving reply."""

_THINKING = "the model is thinking …"


class View:
    """An observer that prints; `live`: the model is really being called.

    `turns` is the number of model calls so far; `running` are the calls that were started and have not returned.
    """

    def __init__(self, console: Console, *, live: bool = True) -> None:
        self._console = console
        self._live = live
        spinner = "line" if console.options.ascii_only else "dots"
        self._thinking = console.status(Text(_THINKING, style="dim"), spinner=spinner)
        self._coming = ""
        self.turns = 0
        self.running: tuple[ToolCall, ...] = ()

    def stopping(self) -> None:
        """Say that the run is being cancelled, which may take a while if a tool is running."""
        if self._console.is_terminal:
            self._console.print()  # the terminal has written ^C
        show(self._console, LabelledText("stop", "cancelling; press Ctrl-C again to abort", label_style="yellow"))

    @contextmanager
    def connecting(self, where: str) -> Iterator[None]:
        """In a terminal, says that the server is being identified: it may be loading its model."""
        self._thinking.update(Text(f"connecting to {where} …", style="dim"))
        self._wait()
        try:
            yield
        finally:
            self._thinking.stop()

    def grow(self, delta: Delta) -> None:
        """Show the end of the arriving reply in the status line."""
        match delta:
            case TextDelta(text=more) | ReasoningDelta(text=more) | CallDelta(arguments=more):
                self._coming = (self._coming + more)[-_TAIL:]
            case CallStarted(name=name):
                self._coming = f"{self._coming} {name} "[-_TAIL:]
            case Retry(fault=fault, seconds=seconds):
                self._coming = ""
                text = printable(f"in {seconds:.1f} seconds: {fault.detail}")
                show(self._console, LabelledText("retry", text, label_style="yellow"))
            case Ended():
                self._coming = ""
            case Reclassified():
                pass  # only the end is shown, whatever it is
            case _:
                assert_never(delta)
        self._thinking.update(Text(printable(self._coming) or _THINKING, style="dim"))

    def __call__(self, event: events.Event) -> None:
        """Print one event."""
        self._note(event)
        for row in rows(event):
            show(self._console, row)

    def _note(self, event: events.Event) -> None:
        """Update the status line and the counts."""
        match event:
            case events.TurnStarted():
                self._turn(event)
            case events.CallsAccepted(calls=calls):
                self.running = calls
            case events.ToolsReturned():
                self.running = ()
            case events.SummaryAsked():
                self._wait()
            case (
                events.ModelReplied()
                | events.SummaryFailed()
                | events.FellBack()
                | events.HistoryCompacted()
                | events.RunFinished()
                | events.RunHalted()
            ):
                self._thinking.stop()
            case _:
                pass

    def _wait(self) -> None:
        if self._live:
            self._thinking.start()

    def _turn(self, event: events.TurnStarted) -> None:
        self.turns = event.turn
        room = f" of {event.context_tokens:,}" if event.context_tokens else ""
        facts = f"   prompt about {event.prompt_tokens:,}{room} tokens, model calls left: {event.calls_left}"
        heading = Text.assemble((f"turn {event.turn}", "bold"), (facts, "dim"))
        self._console.print(heading, soft_wrap=not self._console.is_terminal)
        self._thinking.update(Text(_THINKING, style="dim"))
        self._wait()
