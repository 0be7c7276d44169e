"""Doubt: calls that were begun, and nobody knows whether they took effect; and the keys that make it harmless (D9)."""

import hashlib

from msgspec.structs import replace

from stages.batch import digest
from stages.effect import CallResult, InDoubt, Succeeded
from stages.message import ToolCall
from stages.state import Batch


def idempotency_key(run: str, call: ToolCall) -> str:
    """The same for the same call of the same run, however often a crash has it made; and for no other.

    Of the run's id, the call's id (its number among all calls of the run), the tool and the canonical arguments.
    """
    parts = (run, call.id, call.name, call.arguments)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def to_be_asked(batch: Batch) -> Batch:
    """The batch with its calls in doubt waiting again: a person is going to be asked about them."""
    settled = tuple(result for result in batch.results if not isinstance(result, InDoubt))
    return replace(batch, results=settled)


def doubts(before: tuple[str, ...], batch: Batch, results: tuple[CallResult, ...]) -> tuple[str, ...]:
    """The digests of all calls in doubt, after these results: a success ends the doubt about the same call before."""
    if not before and InDoubt not in map(type, results):
        return ()
    calls = {call.id: digest(call) for call in batch.calls}
    for result in results:
        match result:
            case InDoubt(call_id=call_id):
                before = (*before, calls[call_id])
            case Succeeded(call_id=call_id):
                before = tuple(known for known in before if known != calls[call_id])
            case _:
                pass
    return tuple(dict.fromkeys(before))
