"""Saved states, checked before a workflow resumes from them."""

from collections.abc import Iterator

from msgspec.structs import replace

from forge.errors import ForgeError
from forge.workflow.workflow import Workflow
from stages.effect import Ask, Execute
from stages.execution import call_digest, unanswered_calls
from stages.message import ToolCall
from stages.saved import current
from stages.schema import Misfit
from stages.state import Awaiting, Batch, Edited, Executed, State, Vetted


def accepted(workflow: Workflow, state: State) -> State:
    """The state, if the workflow can resume from it; decisions that are the workflow's are not taken from it.

    ForgeError, with all problems, for a state of another version, or one that waits for something the workflow would
    not ask for: an unknown tool, arguments that do not fit, a call without the approval that it needs.
    """
    try:
        state = current(state)
    except ValueError as error:
        raise ForgeError(str(error)) from None
    if problems := tuple(_problems(workflow, state)):
        raise ForgeError("this workflow cannot resume from that state: " + "; ".join(problems))
    match state.phase:
        case Awaiting(effect=Execute(calls=calls) as effect) as phase:
            specs = [spec for call in calls if (spec := workflow.rules.tool(call.name))]
            decided = replace(
                effect,
                run=state.run,
                retriable=all(spec.retriable for spec in specs),
                budget=state.ledger.budget if any(spec.delegates for spec in specs) else None,
            )
            return state.to(replace(phase, effect=decided))
        case Vetted() as phase:
            return state.to(replace(phase, allowed=False))
        case Edited() as phase:
            return state.to(replace(phase, fit=False))
        case _:
            return state


def _problems(workflow: Workflow, state: State) -> Iterator[str]:
    phase = state.phase
    match phase:
        case Vetted(calls=calls):
            left = calls
        case Awaiting(batch=batch) | Edited(batch=batch) | Executed(batch=batch):
            left = unanswered_calls(batch)
        case _:
            return
    for call in left:
        yield from _misfits(workflow, call)
    match phase:
        case Awaiting(effect=Execute(calls=calls), batch=batch):
            yield from _unfounded(workflow, calls, batch, left)
        case Awaiting(effect=Ask() as ask) | Edited(ask=ask):
            if ask.call not in left:
                yield f"it asks about a call of {ask.call.name} that is not waiting for an answer"
            if ask.digest != call_digest(ask.call):
                yield f"its question about {ask.call.name} is bound to arguments other than the call's"
        case _:
            pass


def _misfits(workflow: Workflow, call: ToolCall) -> Iterator[str]:
    """What is wrong with a waiting call."""
    checks = workflow.compiled.tools.checks
    check = checks.get(call.name)
    if check is None:
        yield f"it waits for a call of {call.name}; the workflow's tools are: {', '.join(checks) or 'none'}"
        return
    fits = check(call.arguments)
    if isinstance(fits, Misfit):
        wrong = "; ".join(f"{p.path or 'arguments'}: expected {p.expected}, got {p.found}" for p in fits.problems)
        yield f"the arguments of its call of {call.name} do not fit the tool: {wrong}"


def _unfounded(
    workflow: Workflow, calls: tuple[ToolCall, ...], batch: Batch, left: tuple[ToolCall, ...]
) -> Iterator[str]:
    """What is wrong with calls that are about to run."""
    for call in calls:
        spec = workflow.rules.tool(call.name)
        if call not in left:
            yield f"it runs a call of {call.name} that is not waiting"
        elif spec is not None and spec.approval and call.id not in batch.approved:
            yield f"it runs {call.name} without the approval that it needs"
