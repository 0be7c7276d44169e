"""Narration: the events of an agent, derived from those of its runs; every start has its end. Pure."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.agent.events import (
    AgentEvent,
    ApprovalEndEvent,
    ApprovalStartEvent,
    CompactionEvent,
    CorrectionEvent,
    DeltaEvent,
    ErrorEvent,
    MessageEvent,
    ModelCallEndEvent,
    ModelCallStartEvent,
    RemarkEvent,
    SteeredEvent,
    ThinkingEvent,
    ToolCallEvent,
    ToolProgressEvent,
    ToolResultEvent,
    TurnCompleteEvent,
    WarningEvent,
)
from forge.errors import explain
from stages import events, reasoning
from stages.effect import CallResult, HandOff, NeedsInput, Said
from stages.execution import result_status, result_text
from stages.halt import Halt
from stages.message import History, Kind, Tool, ToolCall, User
from stages.state import Completed, Ending
from stages.wire.deltas import Delta

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
