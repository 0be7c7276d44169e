"""Calls that have a question to the user: which of a batch is next, and the run as it goes on with the answer."""

from collections.abc import Collection

from msgspec.structs import replace

from stages.effect import CallResult, Failed, NotRun, Paused, Succeeded, Unresolved
from stages.nudges.outcomes import after_answer
from stages.state import Batch, Budget, Done, Executed, State


def paused_call(batch: Batch) -> Paused | None:
    """The call that goes on with an answer, else the first that waits for one; None: no call has a question."""
    paused = [result for result in batch.results if isinstance(result, Paused)]
    return next((one for one in paused if one.answer), paused[0] if paused else None)


def without_lost_pauses(batch: Batch, tools: Collection[str]) -> Batch:
    """The batch, in which calls with a question are given up whose tool is gone meanwhile."""
    gone = {call.id for call in batch.calls if call.name not in tools}
    kept = tuple(_given_up(r) if isinstance(r, Paused) and r.call_id in gone else r for r in batch.results)
    return batch if kept == batch.results else replace(batch, results=kept)


def _given_up(paused: Paused) -> NotRun:
    asked = after_answer(paused.asks.question, paused.answer)
    return NotRun(call_id=paused.call_id, reason=f"There is no such tool any more. {asked}")


def without_pause(batch: Batch, paused: Paused) -> Batch:
    """The batch with that call unanswered again: it is about to go on."""
    return replace(batch, results=tuple(result for result in batch.results if result is not paused))


def answered(state: State, answer: str, budget: Budget) -> State | None:
    """The state of a run that ended with a call's question, going on with that call; None: it did not end so.

    It has a budget of its own, as any message of the user has; what was done before stays done.
    """
    if not isinstance(state.phase, Done) or (paused := paused_call(state.phase.batch)) is None:
        return None
    batch = state.phase.batch
    told = tuple(replace(paused, answer=answer) if result is paused else result for result in batch.results)
    fresh = state.note(budget=budget, retries=0, tool_errors=0, premature=0, prerequisite_violations=0)
    return fresh.to(Executed(batch=replace(batch, results=told)))


def with_exchange(result: CallResult, paused: Paused) -> CallResult:
    """The result of a call that went on, after what it had asked and what the user said."""
    asked = after_answer(paused.asks.question, paused.answer)
    match result:
        case Succeeded(text=text):
            return replace(result, text=f"{asked}\n{text}")
        case Unresolved(message=message) | Failed(message=message):
            return replace(result, message=f"{asked}\n{message}")
        case _:
            return result
