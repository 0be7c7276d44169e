"""The text rows for each event of a run. `lines.py` prints them, `timelines.py` puts them on a page."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import assert_never

from msgspec import Struct

from forge.errors import explain
from forge.journal.replaying import ending
from stages import events
from stages.effect import CallResult, InDoubt, Paused, Reply, Succeeded
from stages.execution import result_text
from stages.message import Kind, ToolCall
from stages.wire.deltas import Delta


class RunRow(Struct, frozen=True):
    """A label, which determines the colour, and a text, which may come from anybody."""

    label: str
    text: str


STYLES = MappingProxyType(
    {
        "approval": ("magenta", ""),
        "called": ("dim", "dim"),
        "compact": ("magenta", ""),
        "done": ("bold green", "bold"),
        "failed": ("yellow", ""),
        "halted": ("bold", "bold red"),
        "held": ("dim", "dim"),
        "mode": ("yellow", ""),
        "note": ("dim", "dim"),
        "nudge": ("yellow", ""),
        "prefix": ("dim", "dim"),
        "progress": ("dim", "dim"),
        "result": ("green", ""),
        "runs": ("cyan", ""),
        "said": ("dim", ""),
        "summary": ("magenta", ""),
        "thought": ("dim", "dim italic"),
        "unknown": ("yellow", ""),
        "warning": ("yellow", ""),
    }
)
"""The styles of label and text in a terminal, by label; a page has its own styles of the same names."""


def rows(event: events.Event | Delta) -> Iterator[RunRow]:
    """The rows of an event; none for the start of a turn, which is a heading, and for parts of a reply."""
    if isinstance(event, Delta):
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
            | events.Steered()
            | events.RunFailed()
        ):
            pass  # replies, results and nudges have their own events, and the others are shown by what follows
        case events.ModelReplied(reply=reply):
            yield from reply_rows(reply)
        case events.CallsAccepted(calls=calls):
            yield from (RunRow("runs", f"{call.name} {call.arguments}{provenance(call)}") for call in calls)
        case events.ToolProgressed(name=name, text=text):
            yield RunRow("progress", f"{name}: {text}")
        case events.ToolsReturned(results=results):
            yield from map(result_row, results)
        case events.ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem):
            why = ", because it may have run already" if in_doubt else f": {problem}" if problem else ""
            yield RunRow("approval", f"{call.name} {call.arguments} needs a person's approval{why}")
        case events.Nudged(text=text):
            yield RunRow("nudge", text)
        case events.Warned(kind=kind, text=text):
            yield RunRow("note" if kind is Kind.PROGRESS_NOTE else "warning", text)
        case events.HeldBack(what=what, why=why):
            yield RunRow("held", f"not offered: {what} ({why})")
        case events.SummaryAsked(messages=messages):
            yield RunRow("summary", f"asked for, of the first {messages} messages")
        case events.SummaryFailed(problem=problem):
            yield RunRow("summary", f"not used: {problem}")
        case events.FellBack(reason=reason):
            yield RunRow("mode", f"falling back to prompted: {reason}")
        case events.HistoryCompacted(compaction=cut):
            fewer = f"{cut.messages_before} → {cut.messages_after} messages"
            yield RunRow("compact", f"{cut.tokens_before:,} → {cut.tokens_after:,} tokens, {fewer}, phase {cut.phase}")
        case events.PrefixLost(kept_tokens=kept, lost_tokens=lost, cause=cause):
            # Small losses are frequent and cheap.
            if lost > (kept + lost) // 4:
                yield RunRow("prefix", f"{kept} of {kept + lost} tokens of the last prompt kept ({cause})")
        case events.BackendReplaced(halt=halt):
            yield RunRow("mode", f"continuing with the next fallback: {explain(halt)}")
        case events.RunFinished(outcome=outcome):
            yield RunRow("done", ending(outcome))
        case events.RunHalted(halt=halt):
            yield RunRow("halted", explain(halt))
        case _:
            assert_never(event)


def result_row(result: CallResult) -> RunRow:
    """What a tool returned, or how its call failed."""
    match result:
        case Succeeded():
            return RunRow("result", result_text(result))
        case InDoubt():
            return RunRow("unknown", result_text(result))
        case Paused(asks=asks):
            return RunRow("result", f"asks the user: {asks.question}")
        case _:
            return RunRow("failed", result_text(result))


def reply_rows(reply: Reply) -> Iterator[RunRow]:
    """What the model said."""
    if reply.reasoning.strip():
        yield RunRow("thought", reply.reasoning)
    if reply.text.strip():
        yield RunRow("said", reply.text)
    yield from (RunRow("called", f"{call.name} {call.arguments}") for call in reply.calls)


def provenance(call: ToolCall) -> str:
    """How a call was found and repaired, if it was not simply given."""
    notes = (*(() if call.origin in {"native", "prompted"} else (f"rescued: {call.origin}",)), *call.repairs)
    return f"   [{'; '.join(notes)}]" if notes else ""
