"""What a run is doing now: the reply that arrives, the tools that run, and the status line of both."""

import json
import re
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from forge.cli.console import printable, readable
from forge.errors import quantity
from stages import events
from stages.events import Stamped
from stages.message import ToolCall
from stages.wire.deltas import CallDelta, CallStarted, Delta, Ended, ReasoningDelta, Reclassified, Retry, TextDelta

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


# The work in progress. Pure.


class RunningTool(Struct, frozen=True, kw_only=True):
    """A running tool and its last progress message; `waiting`: for a person's approval."""

    call_id: str
    name: str
    arguments: str
    progress: str = ""
    waiting: bool = False


class Screen(Struct, frozen=True, kw_only=True):
    """The state of the current run, which in a chat is a message."""

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


def after(screen: Screen, stamped: Stamped) -> Screen:
    """The screen after an event of the run itself, not of an agent called as a tool."""
    match stamped.event:
        case events.RunStarted():
            return Screen(thought=screen.thought)
        case events.TurnStarted():
            return replace(screen, asked=True, summing=False, reply=ComingReply())
        case events.SummaryAsked():
            return replace(screen, asked=True, summing=True, reply=ComingReply())
        case events.ModelReplied(summary=False) as replied:
            return replace(screen, asked=False, reply=ComingReply(), thought=replied.thought or screen.thought)
        case events.ModelReplied() | events.ModelFailed():
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
    """The calls that are new; a call that needed approval is known since the question."""
    known = {one.call_id for one in screen.running}
    new = (call for call in calls if call.id not in known)
    return tuple(RunningTool(call_id=call.id, name=call.name, arguments=call.arguments) for call in new)


def under_way(screen: Screen) -> tuple[str, str]:
    """The work in progress: a status line, and the answer so far as Markdown."""
    if screen.running:
        tool = screen.running[-1]
        more = f" (and {len(screen.running) - 1} more)" if len(screen.running) > 1 else ""
        said = f": {printable(tool.progress, _SHOWN)}" if tool.progress.strip() else ""
        return f"{'asking about' if tool.waiting else 'running'} {printable(tool.name)}{more}{said}", ""
    if not screen.asked:
        return "working", ""
    if screen.summing:
        return "compacting the conversation", ""
    if words := coming_words(screen.reply).strip():
        return "answering", readable(words)
    if name := coming_call(screen.reply):
        written = screen.reply.arguments or screen.reply.text.rpartition(name)[2]
        return f"calling {printable(name)}{_end_of(written)}", ""
    if thought := screen.reply.reasoning:
        return f"thinking, {quantity(len(thought.split()), 'word')}{_end_of(thought)}", ""
    return "reading" if not screen.reply.text else "writing", ""


_SHOWN = 60
"""Maximum characters of a text in a status line."""


def _end_of(text: str) -> str:
    return f": …{printable(text[-_SHOWN:])}" if text else ""
