"""Prints a run as it happens, in a terminal or a pipe. `rows.py` has the texts of the rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from rich.text import Text

from forge.cli.console import Console, LabelledText, printable
from forge.cli.rows import provenance, rows
from stages import events
from stages.effect import Ask, Execute, Send
from stages.message import Assistant, Message, System, Tool, ToolCall, User
from stages.state import Awaiting, Ledger, State
from stages.wire.deltas import CallDelta, CallStarted, Delta, Ended, ReasoningDelta, Reclassified, Retry, TextDelta

_WHOLE = 4_000
"""Maximum characters of a line of a halt's reason."""


def lines(event: events.Event | Delta) -> Iterator[LabelledText]:
    """The coloured rows of an event."""
    for row in rows(event):
        # A halt's reason is shown completely, line by line: it is what the reader wants to know.
        for number, line in enumerate(row.text.splitlines() if row.label == "halted" else [row.text]):
            text = printable(line, _WHOLE) if row.label == "halted" else printable(line)
            yield LabelledText("" if number else row.label, text, row.style, "" if number else row.label_style)


# A run: a few lines per turn as it happens.

_TAIL = 60
"""Characters shown of an arriving reply."""

_THINKING = "the model is thinking …"


class View:
    """Prints the events of a run; `live`: model calls take time, so show that one is in progress.

    `turns` is the number of model calls so far; `running` are the calls that have not returned yet.
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
        """Print that the run is being cancelled, which may take a while if a tool is running."""
        if self._console.is_terminal:
            self._console.print()  # the terminal has echoed ^C
        self._console.show(LabelledText("stop", "cancelling; press Ctrl-C again to abort", label_style="yellow"))

    @contextmanager
    def connecting(self, where: str) -> Iterator[None]:
        """In a terminal, show that the server is being examined: it may be loading its model."""
        self._thinking.update(Text(f"connecting to {where} …", style="dim"))
        self._wait()
        try:
            yield
        finally:
            self._thinking.stop()

    def stream(self, _: Delta) -> None:
        """An `on_chunk` that only turns streaming on; deltas also arrive as events."""

    def _grow(self, delta: Delta) -> None:
        """Show the end of the arriving reply in the status line."""
        match delta:
            case TextDelta(text=more) | ReasoningDelta(text=more) | CallDelta(arguments=more):
                self._coming = (self._coming + more)[-_TAIL:]
            case CallStarted(name=name):
                self._coming = f"{self._coming} {name} "[-_TAIL:]
            case Retry(fault=fault, seconds=seconds):
                self._coming = ""
                text = printable(f"in {seconds:.1f} seconds: {fault.detail}")
                self._console.show(LabelledText("retry", text, label_style="yellow"))
            case Ended():
                self._coming = ""
            case Reclassified():
                pass  # only the end is shown, whatever it is
            case _:
                assert_never(delta)
        self._thinking.update(Text(printable(self._coming) or _THINKING, style="dim"))

    def __call__(self, stamped: events.Stamped) -> None:
        """Print one event; events of nested agents are left out, because their result shows up as a tool's."""
        event = stamped.event
        if stamped.parent:
            return
        if isinstance(event, Delta):
            self._grow(event)
            return
        self._note(event)
        for line in lines(event):
            self._console.show(line)

    def _note(self, event: events.Event) -> None:
        """Update the status line and the counts."""
        match event:
            case events.TurnStarted():
                self.turns = event.turn
                room = f" of {event.context_tokens:,}" if event.context_tokens else ""
                facts = f"   prompt about {event.prompt_tokens:,}{room} tokens, model calls left: {event.calls_left}"
                heading = Text.assemble((f"turn {event.turn}", "bold"), (facts, "dim"))
                self._console.print(heading, soft_wrap=not self._console.is_terminal)
                self._thinking.update(Text(_THINKING, style="dim"))
                self._wait()
            case events.CallsAccepted(calls=calls):
                self.running = calls
            case events.ToolsReturned():
                self.running = ()
            case events.SummaryAsked():
                self._wait()
            case (
                events.Connected()  # a resumed run may begin with a question, which the spinner would overwrite
                | events.ModelReplied()
                | events.ModelFailed()
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


# A state: its phase, the non-default fields of its ledger, its messages.

COLUMN = 28
"""Length of the longest label."""


def state_rows(state: State) -> Iterator[LabelledText]:
    """The rows of the state."""
    yield LabelledText("phase", printable(phase_of(state)))
    ledger, budget = state.ledger, state.ledger.budget
    spare = ((name, getattr(budget, name)) for name in budget.__struct_fields__ if name != "price")
    left = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in spare if value is not None)
    yield LabelledText("budget", printable(left))
    fresh = Ledger(budget=budget)
    for name in ledger.__struct_fields__:
        value = getattr(ledger, name)
        if value != getattr(fresh, name):
            told = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            yield LabelledText(name, printable(told))
    for index, message in enumerate(state.history):
        label, text = _message_row(message)
        yield LabelledText(f"[{index}] {label}", printable(text))
        if isinstance(message, Assistant):
            for call in message.calls:
                yield LabelledText("", printable(f"calls {call.name} {call.arguments}{provenance(call)}"))


def phase_of(state: State) -> str:
    """The phase as text, with what it awaits."""
    phase = state.phase
    match phase:
        case Awaiting(effect=Send(turn=turn), summary=summary):
            return f"awaiting the model, turn {turn}{', for a summary' if summary else ''}"
        case Awaiting(effect=Execute(calls=calls)):
            return f"awaiting the tools {', '.join(call.name for call in calls)}"
        case Awaiting(effect=Ask(call=call)):
            return f"awaiting a person's decision on {call.name}"
        case _:
            return type(phase).__name__.lower()


def _message_row(message: Message) -> tuple[str, str]:
    """The label and the text of a message."""
    match message:
        case System(text=text):
            return "system", text
        case User(text=text, kind=kind, turn=turn):
            return f"{kind}, turn {turn}", text
        case Assistant(text=text, turn=turn):
            return f"assistant, turn {turn}", text
        case Tool(name=name, text=text, kind=kind, turn=turn):
            return f"{kind}, turn {turn}", f"{name}: {text}"
        case _:
            assert_never(message)
