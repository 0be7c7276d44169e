"""What a run looks like in a terminal: a few lines a turn while it happens; plain lines in a pipe."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from rich.console import Console
from rich.text import Text

from forge.decision import ending
from forge.errors import explain
from stages import events
from stages.batch import shown
from stages.delta import CallDelta, CallStarted, Delta, Ended, ReasoningDelta, Reclassified, Retry, TextDelta
from stages.effect import Reply, Succeeded
from stages.message import Kind, ToolCall

WIDTH = 400
"""Characters of one thing that are shown."""

TAIL = 60
"""Characters of a reply that is coming."""

THINKING = "the model is thinking …"


class View:
    """An observer that prints; `turns` counts the model calls that it saw. `live`: somebody waits for the model."""

    def __init__(self, console: Console, *, live: bool = True) -> None:
        self._console = console
        self._live = live
        self._thinking = console.status(Text(THINKING, style="dim"))
        self._coming = ""
        self.turns = 0

    @contextmanager
    def connecting(self, where: str) -> Iterator[None]:
        """In a terminal, says that the server is asked what it is: it may be loading its model."""
        self._thinking.update(Text(f"asking {where} what it is …", style="dim"))
        self._wait()
        try:
            yield
        finally:
            self._thinking.stop()

    def grow(self, delta: Delta) -> None:
        """Show the end of the reply that is coming, where the terminal says that the model is thinking."""
        match delta:
            case TextDelta(text=more) | ReasoningDelta(text=more) | CallDelta(arguments=more):
                self._coming = (self._coming + more)[-TAIL:]
            case CallStarted(name=name):
                self._coming = f"{self._coming} {name} "[-TAIL:]
            case Retry(fault=fault, seconds=seconds):
                self._coming = ""
                self._line("retry", f"in {seconds:.1f} seconds: {fault.detail}", "yellow")
            case Ended():
                self._coming = ""
            case Reclassified():
                pass  # only the end is shown, whatever it is
            case _:
                assert_never(delta)
        self._thinking.update(Text(printable(self._coming) or THINKING, style="dim"))

    def __call__(self, event: events.Event) -> None:
        """Print one event."""
        match event:
            case events.TurnStarted():
                self._turn(event)
            case events.ModelReplied(reply=reply):
                self._thinking.stop()
                self._reply(reply)
            case events.CallsAccepted(calls=calls):
                for call in calls:
                    self._line("runs", f"{call.name} {call.arguments}{provenance(call)}", "cyan")
            case events.ToolProgressed(name=name, text=text):
                self._line("progress", f"{name}: {text}", "dim")
            case events.ToolsReturned(results=results):
                for result in results:
                    self._line("result", shown(result), "green" if isinstance(result, Succeeded) else "yellow")
            case events.Nudged(text=text):
                self._line("nudge", text, "yellow")
            case events.Warned(kind=Kind.PROGRESS_NOTE, text=text):
                self._line("note", text, "dim")
            case events.Warned(text=text):
                self._line("warning", text, "yellow")
            case events.Narrowed(tools=tools):
                self._line("ladder", f"no progress: offered are {', '.join(tools)}", "yellow")
            case events.ModeChanged(mode=mode):
                self._line("ladder", f"no progress: {mode} from now on", "yellow")
            case events.ApprovalAsked(call=call, in_doubt=in_doubt, problem=problem):
                why = ", as it may have run already" if in_doubt else f": {problem}" if problem else ""
                self._line("approval", f"{call.name} {call.arguments} needs a person's yes{why}", "magenta")
            case events.MessageAdded():
                pass  # replies, results and nudges are shown as they come
            case events.SummaryAsked(messages=messages):
                self._line("summary", f"asked for, of the first {messages} messages", "magenta")
                self._wait()
            case events.SummaryFailed(problem=problem):
                self._thinking.stop()
                self._line("summary", f"not used: {problem}", "yellow")
            case events.FellBack(reason=reason):
                self._thinking.stop()
                self._line("mode", f"prompted from now on: {reason}", "yellow")
            case events.Compacted(compaction=cut):
                self._thinking.stop()
                self._line("compact", f"{cut.tokens_before} → {cut.tokens_after} tokens, phase {cut.phase}", "magenta")
            case events.PrefixLost(kept_tokens=kept, lost_tokens=lost, cause=cause):
                # A little is lost at many a turn and costs next to nothing.
                if lost > (kept + lost) // 4:
                    self._line("prefix", f"{kept} of {kept + lost} tokens of the last prompt kept ({cause})", "dim")
            case events.Finished(outcome=outcome):
                self._line("done", ending(outcome), "bold green")
            case events.Halted(halt=halt):
                self._thinking.stop()
                self._line("halted", explain(halt), "bold red")
            case _:
                assert_never(event)

    def _wait(self) -> None:
        if self._live:
            self._thinking.start()

    def _turn(self, event: events.TurnStarted) -> None:
        self.turns = event.turn
        room = f" of {event.context_tokens:,}" if event.context_tokens else ""
        facts = f"   prompt about {event.prompt_tokens:,}{room} tokens, model calls left: {event.calls_left}"
        self._console.print(Text(f"turn {event.turn}", style="bold").append(facts, style="dim"))
        self._thinking.update(Text(THINKING, style="dim"))
        self._wait()

    def _reply(self, reply: Reply) -> None:
        if reply.reasoning.strip():
            self._line("thought", reply.reasoning, "dim italic")
        if reply.text.strip():
            self._line("said", reply.text, "dim")
        for call in reply.calls:
            self._line("called", f"{call.name} {call.arguments}", "dim")

    def _line(self, label: str, text: str, style: str) -> None:
        self._console.print(Text(f"{label:>9}  ", style="dim").append(printable(text), style=style), soft_wrap=True)


def printable(text: str) -> str:
    """The text on one line, cut to size, without what could steer a terminal: it comes from a model or a tool."""
    flat = " ".join(text.split())
    safe = "".join(c if c.isprintable() else "�" for c in flat[:WIDTH])
    return safe if len(flat) <= WIDTH else f"{safe}… ({len(flat) - WIDTH} more)"


def provenance(call: ToolCall) -> str:
    """How a call was found, where it was not simply given."""
    notes = (*(() if call.origin in {"native", "prompted"} else (f"rescued: {call.origin}",)), *call.repairs)
    return f"   [{'; '.join(notes)}]" if notes else ""
