"""What an agent tells while it works, derived from the events of its runs."""

from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.errors import explain
from stages import events, reasoning
from stages.effect import CallResult, HandOff, NeedsInput, Said, Usage
from stages.execution import result_status, result_text
from stages.halt import Halt
from stages.message import History, Kind, Status, Tool, ToolCall, User
from stages.state import Compaction, Completed, Ending
from stages.wire.deltas import Delta

# Events of an agent: what a user is shown of its work, each with its run, turn, sequence and time.


class Stamped(Struct, frozen=True, kw_only=True):
    """What every event has.

    `run` tells the messages apart; `turn` counts the model calls of the conversation, `sequence` the agent's events,
    from 1; `time` is in Unix seconds.
    """

    run: str = ""
    turn: int = 0
    sequence: int = 0
    time: float = 0.0


class TurnStartEvent(Stamped, frozen=True, kw_only=True, tag="turn_start"):
    """The agent begins to work on the message; empty: it continues with one that was interrupted."""

    message: str


class ModelCallStartEvent(Stamped, frozen=True, kw_only=True, tag="model_call_start"):
    """The model is asked. `prompt_tokens` is an estimate; `context_tokens` 0: not known; both 0 for a summary."""

    purpose: Literal["turn", "summary"] = "turn"
    prompt_tokens: int = 0
    context_tokens: int = 0
    calls_left: int = 0


class DeltaEvent(Stamped, frozen=True, kw_only=True, tag="delta"):
    """The reply grew (`stages.wire.deltas`). What it adds up to follows as events of its own."""

    delta: Delta


class ModelCallEndEvent(Stamped, frozen=True, kw_only=True, tag="model_call_end"):
    """The model's reply is there; with an empty `finish`, none came, or none that a turn goes on with."""

    finish: str = ""
    usage: Usage | None = None


class ThinkingEvent(Stamped, frozen=True, kw_only=True, tag="thinking"):
    """What the model thought before it replied."""

    text: str


class RemarkEvent(Stamped, frozen=True, kw_only=True, tag="remark"):
    """What the model said beside its calls."""

    text: str


class ToolCallEvent(Stamped, frozen=True, kw_only=True, tag="tool_call"):
    """A call passed every check. A ToolResultEvent with the same id follows, whatever happens."""

    call_id: str
    name: str
    arguments: str


class ApprovalStartEvent(Stamped, frozen=True, kw_only=True, tag="approval_start"):
    """A person is asked about the call. `problem`: what is wrong with the arguments that the person gave."""

    call_id: str
    problem: str = ""


class ApprovalEndEvent(Stamped, frozen=True, kw_only=True, tag="approval_end"):
    """The person has answered, or was not there. `arguments` are those that the call runs with."""

    call_id: str
    approved: bool
    arguments: str = ""


class ToolProgressEvent(Stamped, frozen=True, kw_only=True, tag="tool_progress"):
    """A running tool has yielded something."""

    call_id: str
    text: str


class ToolResultEvent(Stamped, frozen=True, kw_only=True, tag="tool_result"):
    """What came of a call, as the model is told."""

    call_id: str
    name: str
    status: Status
    text: str


class CorrectionEvent(Stamped, frozen=True, kw_only=True, tag="correction"):
    """The model was corrected."""

    kind: Kind
    text: str


class WarningEvent(Stamped, frozen=True, kw_only=True, tag="warning"):
    """The model is told of a limit that is near."""

    kind: Kind
    text: str


class SteeredEvent(Stamped, frozen=True, kw_only=True, tag="steered"):
    """The model is given what the user said while it worked."""

    text: str


class CompactionEvent(Stamped, frozen=True, kw_only=True, tag="compaction"):
    """The history was shortened."""

    compaction: Compaction


class ChildEvent(Stamped, frozen=True, kw_only=True, tag="child"):
    """Something happened in the work of another agent, of the name `agent`, that the call asked (`agent_tool`).

    `event` is numbered and timed as that agent's own; it may be a ChildEvent itself.
    """

    agent: str
    call_id: str
    event: "AgentEvent"


class MessageEvent(Stamped, frozen=True, kw_only=True, tag="message"):
    """The agent's answer to the user: its words, its result or its question, whichever way it was given."""

    text: str
    suggestions: tuple[str, ...] = ()


class ErrorEvent(Stamped, frozen=True, kw_only=True, tag="error"):
    """Why there is no answer, as a sentence."""

    text: str


class TurnCompleteEvent(Stamped, frozen=True, kw_only=True, tag="turn_complete"):
    """The work on the message is over: an outcome, or a halt; neither, if a function of the program's own failed."""

    outcome: Ending | None = None
    halt: Halt | None = None


AgentEvent = (
    TurnStartEvent
    | ModelCallStartEvent
    | DeltaEvent
    | ModelCallEndEvent
    | ThinkingEvent
    | RemarkEvent
    | ToolCallEvent
    | ApprovalStartEvent
    | ApprovalEndEvent
    | ToolProgressEvent
    | ToolResultEvent
    | CorrectionEvent
    | WarningEvent
    | SteeredEvent
    | CompactionEvent
    | ChildEvent
    | MessageEvent
    | ErrorEvent
    | TurnCompleteEvent
)


# Narration: the events of an agent, derived from those of its runs; every start has its end. Pure.

Told = tuple[AgentEvent, ...]


class Narration(Struct, frozen=True, kw_only=True):
    """What has been told of a run: what is open, and what is not to be told twice."""

    turn: int = 0
    asking: bool = False
    """The model was asked, and has not replied."""
    calls: tuple[ToolCall, ...] = ()
    """The calls that have no result yet."""
    asked: str = ""
    """The id of the call that a person is asked about."""
    remarked: int = -1
    """The turn whose words beside its calls were told."""
    opened: bool = False
    """The messages that the run began with are over."""


def narrate(before: Narration, told: events.Event | Delta) -> tuple[Narration, Told]:
    """What there is to tell after this event of a run, or this delta of a reply."""
    if isinstance(told, Delta):
        return before, (DeltaEvent(delta=told),)
    closing = before.asking and not isinstance(told, events.ToolProgressed | events.ModelReplied)
    now = replace(before, asking=False) if closing else before
    after, more = _told(now, told)
    opened = replace(after, opened=before.opened or not isinstance(told, events.MessageAdded))
    return opened, (*((ModelCallEndEvent(),) if closing else ()), *more)


def _told(now: Narration, told: events.Event) -> tuple[Narration, Told]:
    match told:
        case events.TurnStarted() | events.SummaryAsked():
            return replace(now, asking=True, turn=told.turn), (_asked(told),)
        case events.ModelReplied(reply=reply):
            thought = reply.reasoning or reasoning.split_reasoning(reply.text)[0]
            thinking = (ThinkingEvent(text=thought.strip()),) if thought.strip() else ()
            return replace(now, asking=False), (ModelCallEndEvent(finish=reply.finish, usage=reply.usage), *thinking)
        case events.CallsAccepted(calls=calls, text=text):
            return _accepted(now, calls, text.strip())
        case events.ApprovalAsked(call=call, problem=problem):
            again = (ApprovalEndEvent(call_id=now.asked, approved=False),) if now.asked else ()
            known, begun = _opened(now, (call,))
            return replace(known, asked=call.id), (*again, *begun, ApprovalStartEvent(call_id=call.id, problem=problem))
        case events.ToolProgressed(call_id=call_id, text=text):
            return now, (ToolProgressEvent(call_id=call_id, text=text),)
        case events.ToolsReturned(results=results):
            return _returned(now, results)
        case _:
            return now, _aside(now, told)


def _asked(told: events.TurnStarted | events.SummaryAsked) -> ModelCallStartEvent:
    if isinstance(told, events.SummaryAsked):
        return ModelCallStartEvent(purpose="summary", calls_left=told.calls_left)
    return ModelCallStartEvent(
        prompt_tokens=told.prompt_tokens, context_tokens=told.context_tokens, calls_left=told.calls_left
    )


def _aside(now: Narration, told: events.Event) -> Told:
    """What opens and closes nothing."""
    match told:
        case events.Nudged(kind=kind, text=text):
            return (CorrectionEvent(kind=kind, text=text),)
        case events.Warned(kind=kind, text=text):
            return (WarningEvent(kind=kind, text=text),)
        case events.HistoryCompacted(compaction=compaction):
            return (CompactionEvent(compaction=compaction),)
        case events.MessageAdded(message=User(kind=Kind.USER_INPUT, text=text)) if now.opened:
            return (SteeredEvent(text=text),)
        case _:
            return ()


def _accepted(now: Narration, calls: tuple[ToolCall, ...], text: str) -> tuple[Narration, Told]:
    remark = (RemarkEvent(text=text),) if text and now.remarked != now.turn else ()
    yes = tuple(
        ApprovalEndEvent(call_id=call.id, approved=True, arguments=call.arguments)
        for call in calls
        if call.id == now.asked
    )
    known, begun = _opened(replace(now, remarked=now.turn, asked="" if yes else now.asked), calls)
    return known, (*remark, *yes, *begun)


def _opened(now: Narration, calls: tuple[ToolCall, ...]) -> tuple[Narration, Told]:
    """Those of the calls that were not told yet."""
    known = {call.id for call in now.calls}
    new = tuple(call for call in calls if call.id not in known)
    told = tuple(ToolCallEvent(call_id=call.id, name=call.name, arguments=call.arguments) for call in new)
    return replace(now, calls=now.calls + new), told


def _returned(now: Narration, results: tuple[CallResult, ...]) -> tuple[Narration, Told]:
    names = {call.id: call.name for call in now.calls}
    back = {result.call_id for result in results}
    no = (ApprovalEndEvent(call_id=now.asked, approved=False),) if now.asked in back else ()
    told = tuple(
        ToolResultEvent(call_id=r.call_id, name=names[r.call_id], status=result_status(r), text=result_text(r))
        for r in results
        if r.call_id in names
    )
    left = tuple(call for call in now.calls if call.id not in back)
    return replace(now, calls=left, asked="" if no else now.asked), (*no, *told)


def concluded(now: Narration, history: History, end: Ending | Halt | str) -> Told:
    """The end of a run: what is open is closed, by what the history says of it; then the answer, or why there is none.

    A text says what is wrong with a function of the program's own.
    """
    answers = {m.call_id: m for m in history if isinstance(m, Tool)}
    return (
        *((ModelCallEndEvent(),) if now.asking else ()),
        *((ApprovalEndEvent(call_id=now.asked, approved=False),) if now.asked else ()),
        *(_cut_short(call, answers.get(call.id)) for call in now.calls),
        *_answered(end),
    )


def _cut_short(call: ToolCall, answer: Tool | None) -> ToolResultEvent:
    if answer is None:
        return ToolResultEvent(call_id=call.id, name=call.name, status="not_run", text="It was not run.")
    return ToolResultEvent(call_id=call.id, name=call.name, status=answer.status, text=answer.text)


def _answered(end: Ending | Halt | str) -> Told:
    match end:
        case str():
            return ErrorEvent(text=end), TurnCompleteEvent()
        case Completed(value=value):
            text = _words(bytes(value))
            return (*((MessageEvent(text=text),) if text else ()), TurnCompleteEvent(outcome=end))
        case Said(text=text):
            return MessageEvent(text=text), TurnCompleteEvent(outcome=end)
        case NeedsInput(question=question, suggestions=suggestions):
            return MessageEvent(text=question, suggestions=suggestions), TurnCompleteEvent(outcome=end)
        case HandOff():
            return (TurnCompleteEvent(outcome=end),)
        case _:
            return ErrorEvent(text=explain(end)), TurnCompleteEvent(halt=end)


def _words(value: bytes) -> str:
    """What a terminal tool returned, as text: a string as it is, nothing for null, anything else as JSON."""
    if value == b"null":
        return ""
    return msgspec.json.decode(value, type=str) if value.startswith(b'"') else value.decode()
