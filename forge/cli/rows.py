"""The text rows for each event of a run, as `forge run`, `replay` and `chat` print them and pages show them."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import assert_never

from msgspec.structs import replace

from forge.cli.console import LINE, LabelledText, printable
from forge.errors import explain
from forge.journal.replaying import ending_text
from stages import events
from stages.effect import CallResult, InDoubt, Paused, Succeeded
from stages.execution import result_text
from stages.message import ToolCall
from stages.wire.deltas import Delta, Retry

STYLES = MappingProxyType(
    {
        "approval": ("magenta", ""),
        "called": ("dim", "dim"),
        "corrected": ("yellow", ""),
        "done": ("bold green", "bold"),
        "failed": ("yellow", ""),
        "halted": ("bold", "bold red"),
        "heard": ("cyan", ""),
        "mode": ("yellow", ""),
        "note": ("dim", "dim"),
        "offer": ("dim", "dim"),
        "prefix": ("dim", "dim"),
        "progress": ("dim", "dim"),
        "result": ("green", ""),
        "retry": ("yellow", ""),
        "runs": ("cyan", ""),
        "said": ("dim", ""),
        "shortened": ("magenta", ""),
        "summary": ("magenta", ""),
        "thought": ("dim", "dim italic"),
        "unknown": ("yellow", ""),
        "warning": ("yellow", ""),
    }
)
"""The styles of label and text in a terminal, by label; a page has its own styles of the same names."""


def run_row(label: str, text: str) -> LabelledText:
    """The row with the styles of its label; the text may come from anybody."""
    label_style, style = STYLES.get(label, ("dim", ""))
    return LabelledText(label, text, style, label_style)


_REASON = 4_000
"""Maximum characters of a line of a halt's reason."""


def shortened(row: LabelledText, width: int = LINE) -> LabelledText:
    """The row as printed: on one line, but a halt's reason completely: it is what the reader wants to know."""
    if row.label == "halted":
        return replace(row, text="\n".join(printable(line, _REASON) for line in row.text.splitlines()))
    return replace(row, text=printable(row.text, width))


def rows(event: events.Event | Delta) -> Iterator[LabelledText]:
    """The rows of an event; none for the start of a turn, which is a heading, and for parts of a reply."""
    if isinstance(event, Retry):
        yield run_row("retry", f"in {event.seconds:.1f} seconds: {event.fault.detail}")
        return
    if isinstance(event, Delta):
        return
    if isinstance(event, events.Notice):
        if (told := events.told(event)).label:
            yield run_row(told.label, told.text)
        return
    match event:
        case (
            events.RunStarted()
            | events.Connected()
            | events.TurnStarted()
            | events.MessageAdded()
            | events.ModelReplied(summary=True)
            | events.ModelFailed()
            | events.ApprovalAnswered()
            | events.RunFailed()
        ):
            pass  # replies, results and nudges have their own events, and the others are shown by what follows
        case events.ModelReplied(reply=reply):
            if reply.reasoning.strip():
                yield run_row("thought", reply.reasoning)
            if reply.text.strip():
                yield run_row("said", reply.text)
            yield from (run_row("called", f"{call.name} {call.arguments}") for call in reply.calls)
        case events.CallsAccepted(calls=calls):
            yield from (run_row("runs", f"{call.name} {call.arguments}{provenance(call)}") for call in calls)
        case events.ToolProgressed(name=name, text=text):
            yield run_row("progress", f"{name}: {text}")
        case events.ToolsReturned(results=results):
            yield from map(result_row, results)
        case events.ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem):
            why = ", because it may have run already" if in_doubt else f": {problem}" if problem else ""
            yield run_row("approval", f"{call.name} {call.arguments} needs a person's approval{why}")
        case events.Steered(text=text):
            yield run_row("heard", text)
        case events.SummaryAsked(messages=messages):
            yield run_row("summary", f"asked for, of the first {messages} messages")
        case events.BackendReplaced(halt=halt):
            yield run_row("mode", f"continuing with the next fallback: {explain(halt)}")
        case events.RunFinished(outcome=outcome):
            yield run_row("done", ending_text(outcome))
        case events.RunHalted(halt=halt):
            yield run_row("halted", explain(halt))
        case _:
            assert_never(event)


def result_row(result: CallResult) -> LabelledText:
    """What a tool returned, or how its call failed."""
    match result:
        case Succeeded():
            return run_row("result", result_text(result))
        case InDoubt():
            return run_row("unknown", result_text(result))
        case Paused(asks=asks):
            return run_row("result", f"asks the user: {asks.question}")
        case _:
            return run_row("failed", result_text(result))


def provenance(call: ToolCall) -> str:
    """How a call was found and repaired, if it was not simply given."""
    notes = (*(() if call.origin in {"native", "prompted"} else (f"rescued: {call.origin}",)), *call.repairs)
    return f"   [{'; '.join(notes)}]" if notes else ""
