"""Prints a run as it happens, in a terminal or a pipe. `rows.py` has the texts of the rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from rich.text import Text

from forge.cli.console import Console, LabelledText, printable
from forge.cli.rows import provenance, rows, shortened
from forge.cli.status import Screen, after, under_way
from stages import events
from stages.effect import Ask, Execute, Send
from stages.message import Assistant, Message, System, Tool, User
from stages.state import Awaiting, Ledger, State
from stages.wire.deltas import Delta

# A run: a few lines per turn as it happens.

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
