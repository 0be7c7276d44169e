"""What a chat shows of its agent's events: what is printed for good, and what is under way at the bottom. Pure."""

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from forge.agent import events
from forge.agent.built_in import NAMES
from forge.agent.events import AgentEvent
from forge.cli.chat.excerpts import excerpt, unmarked
from forge.cli.chat.wording import ComingReply, coming_call, coming_words, grown
from forge.cli.layout import LabelledText
from forge.cli.plain import printable, readable
from forge.errors import quantity
from stages.effect import HandOff
from stages.halt import ApprovalNeeded, Cancelled
from stages.message import Kind
from stages.wire.deltas import Retry


class Spelled(Struct, frozen=True):
    """Markdown that the agent says to the user, and the answers that it suggests."""

    markdown: str
    suggestions: tuple[str, ...] = ()


Printed = LabelledText | Spelled
"""What is printed for good: a labelled row, or the agent's answer."""


class RunningTool(Struct, frozen=True, kw_only=True):
    """A tool under way, and what it has said last."""

    call_id: str
    name: str
    arguments: str
    progress: str = ""


class Screen(Struct, frozen=True, kw_only=True):
    """What a chat knows of the message that is worked on."""

    asked: bool = False
    """The model is asked, and has not replied."""
    summing: bool = False
    """What it was asked for is a summary."""
    reply: ComingReply = ComingReply()
    running: tuple[RunningTool, ...] = ()
    thought: str = ""
    """What the model thought last."""
    problem: str = ""
    """Why there is no answer."""
    told: bool = False
    """The end of the work was told."""


def followed_by(screen: Screen, event: AgentEvent) -> tuple[Screen, tuple[Printed, ...]]:
    """The screen after the event, and what is printed of it."""
    return _after(screen, event), tuple(_printed(screen, event))


def _after(screen: Screen, event: AgentEvent) -> Screen:
    match event:
        case events.TurnStartEvent():
            return Screen(thought=screen.thought)
        case events.ModelCallStartEvent(purpose=purpose):
            return replace(screen, asked=True, summing=purpose == "summary", reply=ComingReply())
        case events.DeltaEvent(delta=delta):
            return replace(screen, reply=grown(screen.reply, delta))
        case events.ModelCallEndEvent():
            return replace(screen, asked=False, reply=ComingReply())
        case events.ThinkingEvent(text=text):
            return replace(screen, thought=text)
        case events.ToolCallEvent(call_id=call_id, name=name, arguments=arguments):
            begun = RunningTool(call_id=call_id, name=name, arguments=arguments)
            return replace(screen, running=(*screen.running, begun))
        case events.ToolProgressEvent(call_id=call_id, text=text):
            tools = (replace(one, progress=text) if one.call_id == call_id else one for one in screen.running)
            return replace(screen, running=tuple(tools))
        case events.ToolResultEvent(call_id=call_id):
            return replace(screen, running=tuple(one for one in screen.running if one.call_id != call_id))
        case events.ErrorEvent(text=text):
            return replace(screen, problem=text)
        case events.TurnCompleteEvent():
            return Screen(thought=screen.thought, told=True)
        case _:
            return screen


def _printed(screen: Screen, event: AgentEvent) -> Iterator[Printed]:
    match event:
        case events.DeltaEvent(delta=Retry(fault=fault, seconds=seconds)):
            yield _row("retry", f"in {seconds:.1f} seconds: {fault.detail}", "yellow")
        case events.ThinkingEvent(text=text):
            words = quantity(len(text.split()), "word")
            yield LabelledText("thought", f"{words}: {printable(text, _FOLDED)}", "dim italic")
        case events.RemarkEvent(text=text):
            yield LabelledText("says", printable(text), "dim")
        case events.ToolCallEvent() | events.ToolResultEvent() | events.ApprovalEndEvent():
            yield from _of_tool(screen, event)
        case events.CorrectionEvent(text=text):
            yield _row("corrected", printable(text, _SHORT), "yellow", "dim")
        case events.WarningEvent(kind=kind, text=text) if kind is not Kind.PROGRESS_NOTE:
            yield _row("warned", text, "yellow", "dim")
        case events.SteeredEvent(text=text):
            yield _row("heard", text, "cyan")
        case events.CompactionEvent(compaction=cut):
            yield _row("shortened", f"from {cut.tokens_before:,} to {cut.tokens_after:,} tokens", "magenta", "dim")
        case events.ChildEvent(agent=agent, event=inner):
            yield from _of_child(agent, inner)
        case events.MessageEvent(text=text, suggestions=suggestions):
            yield Spelled(readable(text), tuple(printable(one) for one in suggestions))
        case events.TurnCompleteEvent():
            yield from _end(screen, event)
        case (
            events.TurnStartEvent()
            | events.ModelCallStartEvent()
            | events.DeltaEvent()
            | events.ModelCallEndEvent()
            | events.ToolProgressEvent()
            | events.ApprovalStartEvent()
            | events.WarningEvent()
            | events.ErrorEvent()
        ):
            pass  # shown while it is under way, asked by whoever asks, or told with the end
        case _:
            assert_never(event)


def _of_child(agent: str, event: AgentEvent) -> Iterator[LabelledText]:
    """What an agent does that a tool asked; its answer is the tool's result."""
    rows = (one for one in _printed(Screen(), event) if isinstance(one, LabelledText))
    yield from (replace(one, text=f"{printable(agent)}: {one.text}") for one in rows)


def _of_tool(
    screen: Screen, event: events.ToolCallEvent | events.ToolResultEvent | events.ApprovalEndEvent
) -> Iterator[LabelledText]:
    """A call and its result; an answer in the arguments of a built-in tool is told as what it is."""
    match event:
        case events.ToolCallEvent(name=name, arguments=arguments) if name not in NAMES:
            yield _row("calls", f"{name} {arguments}", "cyan")
        case events.ToolResultEvent(name=name, status=status, text=text) if name not in NAMES or status != "succeeded":
            of = f"{printable(name)}: " if len(screen.running) > 1 else ""
            good = status == "succeeded"
            yield LabelledText(
                "result", of + excerpt(text if good else unmarked(text)), "dim", "green" if good else "yellow"
            )
        case events.ApprovalEndEvent(call_id=call_id, approved=True, arguments=arguments):
            asked = next((one.arguments for one in screen.running if one.call_id == call_id), arguments)
            changed = "" if asked == arguments else f" with {arguments}"
            yield _row("allowed", f"by you{changed}", "green")
        case _:
            pass


def _end(screen: Screen, event: events.TurnCompleteEvent) -> Iterator[LabelledText]:
    match event:
        case events.TurnCompleteEvent(halt=Cancelled()):
            yield _row("cancelled", "say something else, or /continue", "yellow")
        case events.TurnCompleteEvent(halt=ApprovalNeeded(tool=tool)):
            yield _row("stopped", f"{tool} needs a person's approval, and nobody is there to ask", "bold red")
        case events.TurnCompleteEvent(outcome=HandOff(to=to, payload=payload)):
            yield _row("hand-off", f"to {to}: {payload}", "magenta")
        case _ if screen.problem:
            # Complete, in its own lines: this is what the reader wants to know.
            for number, line in enumerate(screen.problem.splitlines()):
                label = "" if number else "stopped"
                yield LabelledText(label, printable(line, _WHOLE), "" if number else "bold", "bold red")
            if event.halt is not None:
                yield LabelledText("", "/continue tries again", "dim")
        case _:
            pass


_FOLDED, _SHORT = 60, 120
"""Characters shown of a folded thought, and of what the model was corrected with."""
_WHOLE = 4_000
"""Maximum characters of a line that says why there is no answer."""


def _row(label: str, text: str, colour: str, style: str = "") -> LabelledText:
    return LabelledText(label, printable(text), style, colour)


def under_way(screen: Screen) -> tuple[str, str]:
    """What happens now: a line about it, and the words that the agent is saying, Markdown so far."""
    if screen.running:
        tool = screen.running[-1]
        more = f" (and {len(screen.running) - 1} more)" if len(screen.running) > 1 else ""
        said = f": {printable(tool.progress, _FOLDED)}" if tool.progress.strip() else ""
        return f"running {printable(tool.name)}{more}{said}", ""
    if not screen.asked:
        return "working", ""
    if screen.summing:
        return "shortening the conversation", ""
    if words := coming_words(screen.reply).strip():
        return "answering", readable(words)
    if name := coming_call(screen.reply):
        return f"calling {printable(name)}", ""
    if thought := screen.reply.reasoning:
        return f"thinking, {quantity(len(thought.split()), 'word')}: …{printable(thought[-_FOLDED:])}", ""
    return "reading" if not screen.reply.text else "writing", ""
