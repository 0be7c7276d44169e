"""The judge: forge's own pipeline from the reply on, with a foreign loop in the place of its interpreters. Pure."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from returns.result import Success

from forge.errors import ForgeError
from forge.guardrails.actions import Action, AskPerson, Call, CallModel, Nudge, RunCalls
from forge.outcome import Finished, Halted
from forge.runtime.advancing import advanced
from forge.workflow.turn import judging
from forge.workflow.workflow import Workflow
from stages import Stage, on, pipeline
from stages.deliver import deliver
from stages.effect import Ask, Execute, Outcome, Reply, Request, Send
from stages.execution import unanswered_calls
from stages.message import Assistant, History, Kind, Message, Tool, ToolCall, User, call_id, is_nudge
from stages.repair.decoding import sound
from stages.state import Awaiting, Done, Ledger, Prepared, Ready, State

VERSION: Final = 1
"""Of a checkpoint's JSON form; a reader refuses another."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """All that the middleware knows. `told`: so many messages of the history are known to the caller.

    `ids` are the server's own ids of the calls of the last reply, by forge's.
    """

    state: State
    told: int = 0
    ids: Mapping[str, str] = {}
    version: int = VERSION


Step = tuple[Checkpoint, Action]


@on(Ready)
def _written(state: State, _: Ready) -> State:
    """The request is the caller's own: nothing has to be written."""
    return state.to(Prepared(request=Request()))


def judge_of(workflow: Workflow) -> Stage:
    """The pipeline of a foreign loop: the workflow's own, without what makes a request."""
    return pipeline(_written, *judging(workflow.compiled).values())


def begin(turn: Stage, workflow: Workflow, message: str) -> Checkpoint:
    """The beginning of a task; `message` is what the user asks for, empty where that is not known."""
    asked = (User(text=sound(message)),) if message else ()
    state = State(history=asked, ledger=Ledger(budget=workflow.budget))
    return _onward(turn, Checkpoint(state=state, told=len(asked)))[0]


def heard(before: Checkpoint, message: str) -> Checkpoint:
    """The checkpoint after the user said something more; the caller knows of it."""
    said = User(text=sound(message), turn=before.state.ledger.turn)
    return replace(before, state=before.state.say(said), told=before.told + 1)


def replied(before: Checkpoint, reply: Reply) -> Checkpoint:
    """The checkpoint that remembers how the server named the calls of this reply, where each has a name of its own.

    Calls are numbered in the order of the reply's, so that the n-th of it is forge's n-th from now on.
    """
    given = [call.id for call in reply.calls]
    named = given if all(given) and len({*given}) == len(given) else []
    first = before.state.ledger.ids + 1
    ids = {call_id(number): name for number, name in enumerate(named, start=first)}
    return replace(before, told=len(before.state.history), ids=ids)


def answered(turn: Stage, before: Checkpoint, outcome: Outcome) -> Step:
    """The checkpoint after the outcome of what it waits for, and what to do next."""
    delivered = deliver(before.state, outcome)
    if not isinstance(delivered, Success):
        return before, Halted(halt=delivered.failure(), state=before.state)
    return _onward(turn, replace(before, state=delivered.unwrap()))


def _onward(turn: Stage, before: Checkpoint) -> Step:
    moved = advanced(turn, before.state)
    if not isinstance(moved, Success):
        return before, Halted(halt=moved.failure(), state=before.state)
    after = replace(before, state=moved.unwrap())
    if isinstance(after.state.phase, Ready):  # the turn is over, the next begins
        return _onward(turn, after)
    return after, next_action(after)


def awaited(checkpoint: Checkpoint) -> Send | Execute | Ask | None:
    """What the task waits for; None once it is over."""
    phase = checkpoint.state.phase
    return phase.effect if isinstance(phase, Awaiting) else None


def next_action(checkpoint: Checkpoint) -> Action:
    """What the caller has to do now."""
    state = checkpoint.state
    match state.phase:
        case Awaiting(effect=Send()):
            added = tuple(_renamed(message, checkpoint.ids) for message in state.history[checkpoint.told :])
            return CallModel(added=added, nudges=nudges_of(added, state.ledger))
        case Awaiting(effect=Execute(calls=calls), batch=batch):
            later = [call for call in unanswered_calls(batch) if call not in calls]
            return RunCalls(calls=_calls(calls, checkpoint.ids), rest=_calls(later, checkpoint.ids))
        case Awaiting(effect=Ask(call=call, problem=problem)):
            return AskPerson(call=_calls([call], checkpoint.ids)[0], problem=problem)
        case Done(outcome=outcome):
            return Finished(outcome=outcome, state=state)
        case _:
            raise ForgeError("the task is over; begin the next with reset()", state)


def _calls(calls: tuple[ToolCall, ...] | list[ToolCall], ids: Mapping[str, str]) -> tuple[Call, ...]:
    return tuple(Call(id=ids.get(call.id, call.id), name=call.name, text=call.arguments) for call in calls)


def _renamed(message: Message, ids: Mapping[str, str]) -> Message:
    match message:
        case Assistant(calls=calls) if calls:
            return replace(message, calls=tuple(replace(call, id=ids.get(call.id, call.id)) for call in calls))
        case Tool(call_id=call_id):
            return replace(message, call_id=ids.get(call_id, call_id))
        case _:
            return message


def nudges_of(added: History, ledger: Ledger) -> tuple[Nudge, ...]:
    """The messages among these that correct the model."""
    return tuple(_nudge(m, ledger) for m in added if isinstance(m, User | Tool) and is_nudge(m))


def _nudge(message: User | Tool, ledger: Ledger) -> Nudge:
    match message.kind:
        case Kind.STEP_NUDGE:
            tier = ledger.premature
        case Kind.PREREQUISITE_NUDGE:
            tier = ledger.prerequisite_violations
        case _:
            tier = max(ledger.retries, ledger.tool_errors)
    if isinstance(message, User):
        return Nudge(role="user", content=message.text, kind=message.kind, tier=tier)
    called, name = message.call_id, message.name
    return Nudge(role="tool", content=message.text, kind=message.kind, tier=tier, call_id=called, tool=name)
