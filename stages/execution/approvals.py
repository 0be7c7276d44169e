"""Approvals: arguments that a person edited, checked like the model's own."""

from collections.abc import Sequence

from msgspec.structs import replace

from stages.effect import NotRun, Refused
from stages.grounding.matching import leaves
from stages.message import ToolCall, User
from stages.nudges import outcomes
from stages.nudges.rendering import render
from stages.objection import Objection
from stages.state import Awaiting, Edited, Executed, State


def edit_refused(phase: Edited, problem: str) -> Awaiting | Executed:
    """The person is asked once more, and told what is wrong; after that the call is not run."""
    ask, batch = phase.ask, phase.batch
    if not ask.problem:
        return Awaiting(effect=replace(ask, problem=problem), batch=batch)
    unrun = NotRun(call_id=ask.call.id, reason=outcomes.badly_edited(ask.call.name, problem))
    return Executed(batch=replace(batch, results=(*batch.results, unrun)))


def edit_accepted(phase: Edited) -> Executed:
    """The call is approved as the person wrote it."""
    batch, call = phase.batch, _written(phase)
    calls = tuple(call if c.id == call.id else c for c in batch.calls)
    return Executed(batch=replace(batch, said=replace(batch.said, calls=calls), approved=(*batch.approved, call.id)))


def calls_to_judge(phase: Edited) -> tuple[ToolCall, ...]:
    """What the guards are asked about: the batch with the call as the person wrote it, without what was refused."""
    call = _written(phase)
    gone = {result.call_id for result in phase.batch.results if isinstance(result, Refused)}
    return tuple(call if c.id == call.id else c for c in phase.batch.calls if c.id not in gone)


def state_for_guards(state: State, phase: Edited) -> State:
    """The state for the guards: what the person wrote is what the user said, so it is no value that nobody gave."""
    return state.say(User(text="\n".join(str(leaf) for leaf in leaves(phase.arguments)), turn=state.ledger.turn))


def problem_with_edit(objections: Sequence[Objection], phase: Edited) -> str:
    """What a guard has against this very call; empty: nothing."""
    return "\n".join(render(one) for one in objections if one.call and one.call.id == phase.ask.call.id)


def _written(phase: Edited) -> ToolCall:
    return replace(phase.ask.call, arguments=phase.arguments)
