"""A state in a terminal: its phase, the ledger's non-default fields, its messages."""

from collections.abc import Iterator
from typing import assert_never

from forge.cli.layout import LabelledText
from forge.cli.lines import provenance
from forge.cli.plain import printable
from stages.effect import Ask, Execute, Send
from stages.message import Assistant, Message, System, Tool, User
from stages.state import Awaiting, Ledger, State

COLUMN = 28
"""Length of the longest label."""


def state_rows(state: State) -> Iterator[LabelledText]:
    """The state, row by row."""
    yield LabelledText("phase", printable(phase_of(state)))
    for name, value in _ledger_rows(state.ledger):
        yield LabelledText(name, printable(value))
    for index, message in enumerate(state.history):
        label, text = _message_row(message)
        yield LabelledText(f"[{index}] {label}", printable(text))
        if isinstance(message, Assistant):
            for call in message.calls:
                yield LabelledText("", printable(f"calls {call.name} {call.arguments}{provenance(call)}"))


def phase_of(state: State) -> str:
    """The phase as a text, with what is awaited."""
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


def _ledger_rows(ledger: Ledger) -> Iterator[tuple[str, str]]:
    """The budget, and the fields of the ledger that differ from their defaults."""
    spare = ((name, getattr(ledger.budget, name)) for name in ledger.budget.__struct_fields__ if name != "price")
    yield "budget", ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in spare if value is not None)
    fresh = Ledger(budget=ledger.budget)
    for name in ledger.__struct_fields__:
        value = getattr(ledger, name)
        if value != getattr(fresh, name):
            yield name, ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


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
