"""Unknown outcomes: calls that were started and may have taken effect; idempotency keys, which make retries safe."""

import hashlib

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.effect import Ask, CallResult, InDoubt, NotRun, Settled, Succeeded
from stages.execution.batch import call_digest
from stages.ledger import Ledger, Success
from stages.message import ToolCall
from stages.nudges import outcomes
from stages.phase import Batch
from stages.policy.progress import Repeating, answer_digest, with_calls
from stages.tool import ToolSpec


def idempotency_key(run: str, call: ToolCall) -> str:
    """The idempotency key of a call: the same however often a crash makes the run repeat it, and of no other call.

    Made from the run's id, the call's id (its number among all calls of the run), the tool and the canonical arguments.
    """
    parts = (run, call.id, call.name, call.arguments)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def unknown_outcome(tool: ToolSpec, ledger: Ledger) -> ToolCall | None:
    """The first call of the tool whose outcome is unknown: the tool is not used until somebody decides.

    None for a tool that is safe to retry: it only reads, or is idempotent.
    """
    if not ledger.in_doubt or tool.retriable:
        return None
    return next((call for call in ledger.in_doubt if call.name == tool.name), None)


def without_unknown_results(batch: Batch, calls: tuple[ToolCall, ...]) -> Batch:
    """The batch with these calls unanswered again: a person is going to be asked about them."""
    ids = {call.id for call in calls}
    return replace(batch, results=tuple(r for r in batch.results if not (isinstance(r, InDoubt) and r.call_id in ids)))


def unknown_outcomes_after(
    before: tuple[ToolCall, ...], batch: Batch, results: tuple[CallResult, ...]
) -> tuple[ToolCall, ...]:
    """The calls whose outcome is unknown after these results; a success settles the same call before it."""
    if not before and InDoubt not in map(type, results):
        return ()
    calls = {call.id: call for call in batch.calls}
    for result in results:
        match result:
            case InDoubt(call_id=call_id):
                before = (*(known for known in before if known.id != call_id), calls[call_id])
            case Succeeded(call_id=call_id):
                before = tuple(known for known in before if call_digest(known) != call_digest(calls[call_id]))
            case _:
                pass
    return before


def settled_outcome(ledger: Ledger, batch: Batch, ask: Ask, found: Settled) -> tuple[Ledger, Batch]:
    """The ledger and the batch once somebody has found out whether the call took effect.

    If it did, it counts as a success, and its result answers the call that was asked about if that is the same call; a
    different one is not run, as the model wanted it without knowing. If it did not, the call goes on.
    """
    unsure = ask.in_doubt
    if unsure is None:
        raise ValueError("no call had an unknown outcome")
    ledger = replace(ledger, in_doubt=tuple(known for known in ledger.in_doubt if known.id != unsure.id))
    if not found.happened:
        return ledger, _instead(batch, NotRun(call_id=unsure.id, reason=outcomes.did_not_happen(unsure.name)))
    success = _result(unsure.id, found)
    cleared = _instead(batch, success)
    if cleared is batch and call_digest(unsure) == call_digest(ask.call):
        return ledger, replace(batch, results=(*batch.results, replace(success, call_id=ask.call.id)))
    if cleared is batch:
        ledger = with_calls(ledger, (_success(unsure, success.text, ledger.turn),), (), Repeating())
    unrun = NotRun(call_id=ask.call.id, reason=outcomes.happened_before(ask.call.name, unsure.arguments))
    return ledger, replace(cleared, results=(*cleared.results, unrun))


def _instead(batch: Batch, found: CallResult) -> Batch:
    """The batch with this result in place of the unknown outcome; the same batch if it has none."""
    if not any(isinstance(result, InDoubt) and result.call_id == found.call_id for result in batch.results):
        return batch
    return replace(batch, results=tuple(found if r.call_id == found.call_id else r for r in batch.results))


def _result(call_id: str, found: Settled) -> Succeeded:
    value = msgspec.json.encode(found.result) if found.result else b"null"
    return Succeeded(call_id=call_id, text=outcomes.happened(found.result), value=Raw(value))


def _success(call: ToolCall, text: str, turn: int) -> Success:
    answer = answer_digest(call.name, call.arguments, text)
    return Success(name=call.name, arguments=call.arguments, answer=answer, turn=turn)
