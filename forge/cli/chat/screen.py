"""How a chat displays an agent's events, as data."""

import json
import re
from collections.abc import Collection, Iterator
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from forge.agent import Agent
from forge.agent.definition import NAMES
from forge.cli.chat.slash import HELP
from forge.cli.console import LabelledText, printable, readable
from forge.errors import explain, quantity
from stages import events
from stages.effect import Ask, CallResult, Execute, HandOff, NeedsInput
from stages.events import Stamped
from stages.execution import result_status, result_text
from stages.halt import ApprovalNeeded, Cancelled
from stages.message import Assistant, Kind, ToolCall, User
from stages.state import Awaiting, Completed, Done, State
from stages.tool import ToolSpec
from stages.wire.deltas import CallDelta, CallStarted, Delta, Ended, ReasoningDelta, Reclassified, Retry, TextDelta

# Excerpts of results. Pure.

_LINES, _LINE = 4, 160
"""Maximum lines of a result to show, and characters of each."""


def excerpt(text: str) -> str:
    """The first lines of a tool's result, shortened, and how many follow."""
    lines = text.strip().splitlines() or ["(nothing)"]
    shown: list[str] = []
    for line in lines[:_LINES]:
        cut = f"… ({len(line) - _LINE} more)" if len(line) > _LINE else ""
        shown.append(readable(line[:_LINE].expandtabs(4)) + cut)
    more = len(lines) - _LINES
    return "\n".join((*shown, f"… {quantity(more, 'more line')}") if more > 0 else shown)


def unmarked(text: str) -> str:
    """An error without the bracketed word that tells a model its kind."""
    marked = text.startswith("[") and text.partition("] ")[0][1:].isalpha()
    return text.partition("] ")[2] if marked else text


# The text of an arriving reply, in words or in the arguments of a call that answers the user. Pure.

_KEPT = 100_000
"""Maximum characters to keep of an arriving reply; a later event has all of it."""


class ComingReply(Struct, frozen=True, kw_only=True):
    """A reply so far: its text, its reasoning, and the name and arguments of the last call."""

    text: str = ""
    reasoning: str = ""
    call: str = ""
    arguments: str = ""


def grown(reply: ComingReply, delta: Delta) -> ComingReply:
    """The reply with the delta applied."""
    match delta:
        case TextDelta(text=more):
            return replace(reply, text=_cut(reply.text + more))
        case ReasoningDelta(text=more):
            return replace(reply, reasoning=_cut(reply.reasoning + more))
        case Reclassified(to_reasoning=0, to_text=count):
            kept, moved = _split(reply.reasoning, count)
            return replace(reply, reasoning=kept, text=_cut(reply.text + moved))
        case Reclassified(to_reasoning=count):
            kept, moved = _split(reply.text, count)
            return replace(reply, text=kept, reasoning=_cut(reply.reasoning + moved))
        case CallStarted(name=name):
            return replace(reply, call=name, arguments="")
        case CallDelta(arguments=more):
            return replace(reply, arguments=_cut(reply.arguments + more))
        case Retry():
            return ComingReply()
        case Ended():
            return reply
        case _:
            assert_never(delta)


def _cut(text: str) -> str:
    return text[:_KEPT]


def _split(text: str, count: int) -> tuple[str, str]:
    at = max(0, len(text) - count)
    return text[:at], text[at:]


def coming_words(reply: ComingReply) -> str:
    """The answer to the user so far; empty if the reply is something else, or not clear yet."""
    if reply.call:
        return _told(f'"{reply.call}"{reply.arguments}', native=True)
    text = reply.text.lstrip()
    return _told(text) if text[:1] in _NOT_WORDS else reply.text


def coming_call(reply: ComingReply) -> str:
    """The name of the tool whose call is arriving; empty if there is none."""
    if reply.call:
        return reply.call
    named = _NAME.findall(reply.text) if reply.text.lstrip()[:1] in _NOT_WORDS else ()
    return named[-1] if named else ""


_NOT_WORDS = frozenset("[{<")
"""The first characters of calls in text."""

_NAME = re.compile(r'"(?:tool|name)"\s{0,50}:\s{0,50}"([A-Za-z0-9_-]{1,64})"')

_ANSWER = re.compile(r'\s{0,50}\{\s{0,50}"answer"\s{0,50}:\s{0,50}"')
"""An answer in words in mode constrained."""

_TOLD = re.compile(
    r'"(?:task_completion|converse|ask_question)"[^"]{0,50}(?:"(?:args|arguments)"[^"]{0,50})?'
    r'"(?:result|message|question)"\s{0,50}:\s{0,50}"'
)
"""The part of a built-in tool's call before the text for the user."""


_STRING_SO_FAR = re.compile(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt])*')


def _told(text: str, *, native: bool = False) -> str:
    begun = _TOLD.search(text) or (None if native else _ANSWER.match(text))
    # A JSON string without its opening quote, up to its end or to where it has arrived.
    found = _STRING_SO_FAR.match(text[begun.end() :]) if begun else None
    return str(json.loads(f'"{found[0]}"', strict=False)) if found else ""


# What is printed permanently, and the work in progress at the bottom. Pure.


class Spelled(Struct, frozen=True):
    """The agent's Markdown answer, with suggested replies."""

    markdown: str
    suggestions: tuple[str, ...] = ()


Printed = LabelledText | Spelled
"""Printed permanently: a labelled row, or the agent's answer."""


class RunningTool(Struct, frozen=True, kw_only=True):
    """A running tool and its last progress message; `waiting`: for a person's approval."""

    call_id: str
    name: str
    arguments: str
    progress: str = ""
    waiting: bool = False


class Screen(Struct, frozen=True, kw_only=True):
    """The state of the current message."""

    asked: bool = False
    """The model was asked and has not replied."""
    summing: bool = False
    """The model was asked for a summary."""
    reply: ComingReply = ComingReply()
    running: tuple[RunningTool, ...] = ()
    approved: tuple[str, ...] = ()
    """Calls that a person has approved and that have not started yet."""
    remarked: int = -1
    """The turn whose text beside its calls was shown."""
    thought: str = ""
    """The model's last reasoning."""
    told: bool = False
    """The end of the work was shown."""


def followed_by(screen: Screen, stamped: Stamped) -> tuple[Screen, tuple[Printed, ...]]:
    """The screen after the event, and what to print."""
    if stamped.parent:
        # For an agent called as a tool, the tool's result shows the answer, or why there is none.
        if isinstance(stamped.event, events.RunHalted | events.RunFailed):
            return screen, ()
        rows = (one for one in _printed(Screen(), stamped) if isinstance(one, LabelledText))
        return screen, tuple(replace(one, text=f"{printable(stamped.agent)}: {one.text}") for one in rows)
    return _after(screen, stamped), tuple(_printed(screen, stamped))


def _after(screen: Screen, stamped: Stamped) -> Screen:
    match stamped.event:
        case events.RunStarted():
            return Screen(thought=screen.thought)
        case events.TurnStarted():
            return replace(screen, asked=True, summing=False, reply=ComingReply())
        case events.SummaryAsked():
            return replace(screen, asked=True, summing=True, reply=ComingReply())
        case events.ModelReplied() as replied:
            return replace(screen, asked=False, reply=ComingReply(), thought=_thought(replied) or screen.thought)
        case events.ModelFailed():
            return replace(screen, asked=False, reply=ComingReply())
        case events.CallsAccepted(calls=calls):
            # An approved call that is not among them runs under another ID, because a person edited it.
            gone = {*screen.approved} - {call.id for call in calls}
            screen = replace(screen, running=tuple(one for one in screen.running if one.call_id not in gone))
            return replace(
                screen, running=(*screen.running, *_begun(screen, calls)), approved=(), remarked=stamped.turn
            )
        case events.ApprovalAsked(call=call):
            return _waiting(replace(screen, running=(*screen.running, *_begun(screen, (call,)))), call.id, waits=True)
        case events.ApprovalAnswered(call_id=call_id, approved=True):
            return _waiting(replace(screen, approved=(*screen.approved, call_id)), call_id, waits=False)
        case events.ToolProgressed(call_id=call_id, text=text):
            tools = (replace(one, progress=text) if one.call_id == call_id else one for one in screen.running)
            return replace(screen, running=tuple(tools))
        case events.ToolsReturned(results=results):
            back = {result.call_id for result in results}
            return replace(screen, running=tuple(one for one in screen.running if one.call_id not in back))
        case events.RunFinished() | events.RunHalted() | events.RunFailed():
            return Screen(thought=screen.thought, told=True)
        case event if isinstance(event, Delta):
            return replace(screen, reply=grown(screen.reply, event))
        case _:
            return screen


def _waiting(screen: Screen, call_id: str, *, waits: bool) -> Screen:
    running = (replace(one, waiting=waits) if one.call_id == call_id else one for one in screen.running)
    return replace(screen, running=tuple(running))


def _begun(screen: Screen, calls: tuple[ToolCall, ...]) -> tuple[RunningTool, ...]:
    """The calls that were not shown yet; calls that need approval are shown with the question."""
    known = {one.call_id for one in screen.running}
    new = (call for call in calls if call.id not in known)
    return tuple(RunningTool(call_id=call.id, name=call.name, arguments=call.arguments) for call in new)


def _thought(replied: events.ModelReplied) -> str:
    return "" if replied.summary else replied.thought


def _printed(screen: Screen, stamped: Stamped) -> Iterator[Printed]:
    match stamped.event:
        case Retry(fault=fault, seconds=seconds):
            yield _row("retry", f"in {seconds:.1f} seconds: {fault.detail}", "yellow")
        case events.ModelReplied() as replied if thought := _thought(replied):
            words = quantity(len(thought.split()), "word")
            yield LabelledText("thought", f"{words}: {printable(thought, _FOLDED)}", "dim italic")
        case events.CallsAccepted(calls=calls, text=text):
            if text.strip() and screen.remarked != stamped.turn:
                yield LabelledText("says", printable(text.strip()), "dim")
            asked = {one.call_id: one.arguments for one in screen.running}
            for call in calls:
                if call.id in screen.approved:
                    changed = "" if asked.get(call.id) == call.arguments else f" with {call.arguments}"
                    yield _row("allowed", f"by you{changed}", "green")
            yield from _called(screen, calls)
        case events.ApprovalAsked(call=call):
            yield from _called(screen, (call,))
        case events.ToolsReturned(results=results):
            yield from _returned(screen, results)
        case events.Nudged(text=text):
            yield _row("corrected", printable(text, _SHORT), "yellow", "dim")
        case events.Warned(kind=kind, text=text) if kind is not Kind.PROGRESS_NOTE:
            yield _row("warned", text, "yellow", "dim")
        case events.Steered(text=text):
            yield _row("heard", text, "cyan")
        case events.HistoryCompacted(compaction=cut):
            yield _row("shortened", f"from {cut.tokens_before:,} to {cut.tokens_after:,} tokens", "magenta", "dim")
        case events.RunFinished(outcome=HandOff(to=to, payload=payload)):
            yield _row("hand-off", f"to {to}: {payload}", "magenta")
        case events.RunFinished(outcome=outcome, text=text) if text or not isinstance(outcome, Completed):
            suggestions = outcome.suggestions if isinstance(outcome, NeedsInput) else ()
            yield Spelled(readable(text), tuple(printable(one) for one in suggestions))
        case events.RunHalted(halt=halt):
            for one in screen.running:  # calls that were waiting for approval
                of = f"{printable(one.name)}: " if len(screen.running) > 1 else ""
                yield LabelledText("result", f"{of}It was not run.", "dim", "yellow")
            match halt:
                case Cancelled():
                    yield _row("cancelled", "send another message, or /continue", "yellow")
                case ApprovalNeeded(tool=tool):
                    told = f"{tool} needs a person's approval, and nobody is there to ask"
                    yield _row("stopped", told, "bold red")
                case _:
                    yield from _stopped(explain(halt))
                    yield LabelledText("", "/continue tries again", "dim")
        case events.RunFailed(problem=problem):
            yield from _stopped(problem)
        case _:
            pass  # shown while in progress, by the asker, or with a later event


def _called(screen: Screen, calls: tuple[ToolCall, ...]) -> Iterator[LabelledText]:
    """Calls that begin, except built-in tools that answer the user."""
    for one in _begun(screen, calls):
        if one.name not in NAMES:
            yield _row("calls", f"{one.name} {one.arguments}", "cyan")


def _returned(screen: Screen, results: tuple[CallResult, ...]) -> Iterator[LabelledText]:
    names = {one.call_id: one.name for one in screen.running}
    for result in results:
        name, good = names.get(result.call_id, ""), result_status(result) == "succeeded"
        if not name or (name in NAMES and good):
            continue  # a refused call is shown by its correction
        of = f"{printable(name)}: " if len(screen.running) > 1 else ""
        text = result_text(result)
        said = of + excerpt(text if good else unmarked(text))
        yield LabelledText("result", said, "dim", "green" if good else "yellow")


def _stopped(problem: str) -> Iterator[LabelledText]:
    """The complete problem, line by line: it is what the reader wants to know."""
    for number, line in enumerate(problem.splitlines()):
        label = "" if number else "stopped"
        yield LabelledText(label, printable(line, _WHOLE), "" if number else "bold", "bold red")


_FOLDED, _SHORT = 60, 120
"""Maximum characters to show of reasoning, and of corrections."""
_WHOLE = 4_000
"""Maximum characters of a line that says why there is no answer."""


def _row(label: str, text: str, colour: str, style: str = "") -> LabelledText:
    return LabelledText(label, printable(text), style, colour)


def under_way(screen: Screen) -> tuple[str, str]:
    """The work in progress: a status line, and the answer so far as Markdown."""
    if screen.running:
        tool = screen.running[-1]
        more = f" (and {len(screen.running) - 1} more)" if len(screen.running) > 1 else ""
        said = f": {printable(tool.progress, _FOLDED)}" if tool.progress.strip() else ""
        return f"{'asking about' if tool.waiting else 'running'} {printable(tool.name)}{more}{said}", ""
    if not screen.asked:
        return "working", ""
    if screen.summing:
        return "compacting the conversation", ""
    if words := coming_words(screen.reply).strip():
        return "answering", readable(words)
    if name := coming_call(screen.reply):
        return f"calling {printable(name)}", ""
    if thought := screen.reply.reasoning:
        return f"thinking, {quantity(len(thought.split()), 'word')}: …{printable(thought[-_FOLDED:])}", ""
    return "reading" if not screen.reply.text else "writing", ""


# Answers to commands, as rows. Pure.

_KEYS = {
    "Enter": "send; while the agent works, it reads it with the next tool results",
    "Alt-Enter": "a new line",
    "Ctrl-C": "cancel the current work; twice on an empty line: exit",
    "Ctrl-D": "end",
    "Up, Ctrl-R": "search the input history",
}


def help_rows(*, keys: bool) -> Iterator[LabelledText]:
    """The commands, and the keys if there are any."""
    for name, one in HELP.items():
        yield LabelledText("", f"{f'/{name} {one.argument}'.rstrip():<16} {one.does}")
    for key, does in _KEYS.items() if keys else ():
        yield LabelledText("", f"{key:<16} {does}")


def opened_rows(agent: Agent, told: tuple[str, ...]) -> Iterator[LabelledText]:
    """The start of a chat: the model, the tools, and files given to the agent."""
    yield from model_rows(agent)
    names = ", ".join(one.name for one in _own(agent.workflow.rules.tools))
    yield LabelledText("tools", printable(names) or "none")
    for sentence in told:
        yield LabelledText("read", printable(sentence))
    yield LabelledText("", "/help lists the commands; Ctrl-C cancels, Ctrl-D exits")


def model_rows(agent: Agent) -> Iterator[LabelledText]:
    """What is known of the model."""
    setup = agent.setup
    if setup is None:
        yield LabelledText("model", "not connected")
        return
    room = f", {setup.context_tokens:,} tokens of context" if setup.context_tokens else ""
    how = f"tool calls {setup.mode}" if agent.workflow.rules.tools else "no tools"
    facts = f"{printable(setup.model) or 'chosen by the server'} ({how}{room})"
    yield LabelledText("model", facts)


def status_facts(agent: Agent, name: str) -> Iterator[str]:
    """The model, its context use, and the name of the conversation."""
    if agent.setup is not None and agent.setup.model:
        yield printable(agent.setup.model, 40)
    use = agent.prompt_use
    if use is not None and use.limit:
        yield f"context {use.used * 100 // use.limit} %"
    yield printable(name, 40)


def tool_rows(tools: Collection[ToolSpec], always: Collection[str]) -> Iterator[LabelledText]:
    """Each tool: its description, and whether it needs approval."""
    if not _own(tools):
        yield LabelledText("tools", "none; this agent can only talk")
    for one in _own(tools):
        asks = ", allowed in this session" if one.name in always else ", asks first" if one.approval else ""
        first = one.description.strip().split("\n")[0]
        yield LabelledText(one.effect, f"{printable(one.name)}{asks}: {printable(first)}")


def _own(tools: Collection[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(one for one in tools if one.name not in NAMES)


def context_rows(agent: Agent) -> Iterator[LabelledText]:
    """The size of the next prompt and of the system prompt's sections, in tokens."""
    use = agent.prompt_use
    if use is not None:
        of = f" of {use.limit:,} tokens ({use.used * 100 // use.limit} %)" if use.limit else " tokens"
        yield LabelledText("prompt", f"about {use.used:,}{of}")
        yield LabelledText("", f"{use.system:,} system prompt, {use.tools:,} tools, {use.messages:,} conversation")
    else:
        yield LabelledText("prompt", "known after your next message")
    for section in agent.sections:
        yield LabelledText("", f"{section.tokens:,} of the system prompt: {section.name}")


def resumed_rows(name: str, state: State | None) -> Iterator[Printed]:
    """The state of the conversation: its name, the last message, and the answer."""
    history = state.history if state is not None else ()
    said = [one for one in history if isinstance(one, User) and one.kind is Kind.USER_INPUT]
    yield LabelledText("goes on", f"{printable(name)}, after {quantity(len(said), 'message')} of yours", "", "cyan")
    if said:
        yield LabelledText("you", printable(said[-1].text), "bold")
    if history and isinstance(history[-1], Assistant) and history[-1].text.strip():
        yield Spelled(readable(history[-1].text))
    if state is None or isinstance(state.phase, Done):
        return
    match state.phase:
        case Awaiting(effect=Ask(call=call)):
            unfinished = f"{printable(call.name)} waits for your approval"
        case Awaiting(effect=Execute(calls=calls)):
            unfinished = f"{printable(', '.join(call.name for call in calls))} may have been running"
        case _:
            unfinished = "your last message was not answered"
    yield LabelledText("cut off", f"{unfinished}; /continue resumes it, or send another message", "", "yellow")
