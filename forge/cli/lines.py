"""Events as rows of output: important ones in colour, secondary ones dim."""

from collections.abc import Iterator
from typing import assert_never

from forge.cli.layout import LabelledText
from forge.cli.plain import printable
from forge.errors import explain
from forge.journal.decisions import ending
from stages import events
from stages.effect import Reply, Succeeded
from stages.execution import result_text
from stages.message import Kind, ToolCall

_SECONDARY = "dim"
_WHOLE = 4_000
"""Maximum characters of a line of a halt's reason."""


def rows(event: events.Event) -> Iterator[LabelledText]:
    """The rows of an event; none for the start of a turn, which is a heading."""
    match event:
        case events.TurnStarted() | events.MessageAdded():
            pass  # replies, results and nudges are shown as they come
        case events.ModelReplied(reply=reply):
            yield from _reply(reply)
        case events.CallsAccepted(calls=calls):
            for call in calls:
                yield _row("runs", f"{call.name} {call.arguments}{provenance(call)}", "cyan")
        case events.ToolProgressed(name=name, text=text):
            yield _aside("progress", f"{name}: {text}")
        case events.ToolsReturned(results=results):
            for result in results:
                yield _row("result", result_text(result), "green" if isinstance(result, Succeeded) else "yellow")
        case events.RunFinished(outcome=outcome):
            yield _row("done", ending(outcome), "bold green", "bold")
        case events.RunHalted(halt=halt):
            # Complete and in its own lines: this is what the reader wants to know.
            for number, line in enumerate(explain(halt).splitlines()):
                yield LabelledText(
                    "" if number else "halted", printable(line, _WHOLE), "" if number else "bold", "bold red"
                )
        case events.ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem):
            why = ", because it may have run already" if in_doubt else f": {problem}" if problem else ""
            yield _row("approval", f"{call.name} {call.arguments} needs a person's approval{why}", "magenta")
        case _:
            yield from _intervention(event)


_Intervention = (
    events.Nudged
    | events.Warned
    | events.Narrowed
    | events.ModeChanged
    | events.SummaryAsked
    | events.SummaryFailed
    | events.FellBack
    | events.HistoryCompacted
    | events.PrefixLost
)
"""Forge's interventions in a conversation."""


def _intervention(event: _Intervention) -> Iterator[LabelledText]:
    match event:
        case events.Nudged(text=text):
            yield _row("nudge", text, "yellow")
        case events.Warned(kind=Kind.PROGRESS_NOTE, text=text):
            yield _aside("note", text)
        case events.Warned(text=text):
            yield _row("warning", text, "yellow")
        case events.Narrowed(tools=tools):
            yield _row("escalate", f"no progress: offered are {', '.join(tools)}", "yellow")
        case events.ModeChanged(mode=mode):
            yield _row("escalate", f"no progress: {mode} from now on", "yellow")
        case events.SummaryAsked(messages=messages):
            yield _row("summary", f"asked for, of the first {messages} messages", "magenta")
        case events.SummaryFailed(problem=problem):
            yield _row("summary", f"not used: {problem}", "yellow")
        case events.FellBack(reason=reason):
            yield _row("mode", f"prompted from now on: {reason}", "yellow")
        case events.HistoryCompacted(compaction=cut):
            yield _row("compact", f"{cut.tokens_before} → {cut.tokens_after} tokens, phase {cut.phase}", "magenta")
        case events.PrefixLost(kept_tokens=kept, lost_tokens=lost, cause=cause):
            # Small losses are frequent and cheap.
            if lost > (kept + lost) // 4:
                yield _aside("prefix", f"{kept} of {kept + lost} tokens of the last prompt kept ({cause})")
        case _:
            assert_never(event)


def _reply(reply: Reply) -> Iterator[LabelledText]:
    if reply.reasoning.strip():
        yield _aside("thought", reply.reasoning, "dim italic")
    if reply.text.strip():
        yield _row("said", reply.text, _SECONDARY)
    for call in reply.calls:
        yield _aside("called", f"{call.name} {call.arguments}")


def _row(label: str, text: str, colour: str, style: str = "") -> LabelledText:
    return LabelledText(label, printable(text), style, colour)


def _aside(label: str, text: str, style: str = _SECONDARY) -> LabelledText:
    return LabelledText(label, printable(text), style)


def provenance(call: ToolCall) -> str:
    """How a call was found and repaired, if it was not simply given."""
    notes = (*(() if call.origin in {"native", "prompted"} else (f"rescued: {call.origin}",)), *call.repairs)
    return f"   [{'; '.join(notes)}]" if notes else ""
