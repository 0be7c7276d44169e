"""Execution: batches in progress, calls with an unknown outcome, and calls that a person approved."""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages import nudges
from stages.budget import with_budget
from stages.effect import (
    Ask,
    Budget,
    CallResult,
    Failed,
    InDoubt,
    NotRun,
    Paused,
    Refused,
    Settled,
    Succeeded,
    Unresolved,
)
from stages.message import Kind, Message, Status, Tool, ToolCall, UnknownCall, User, call_id
from stages.nudges import after_answer
from stages.order import Use, judged_by
from stages.progress import attempt_of, success_of
from stages.schema.canonical_json import canonical
from stages.state import Attempt, Awaiting, Batch, Done, Edited, Executed, Ledger, State, Success
from stages.tool import ToolEffect, ToolSpec

# A batch of calls in progress: which calls run next, and what is recorded in the end.


def call_digest(call: ToolCall) -> str:
    """The digest of a call's tool and arguments; formatting makes no difference."""
    return hashlib.sha256(f"{call.name}\0{canonical(call.arguments)}".encode()).hexdigest()


def question(
    call: ToolCall, in_doubt: UnknownCall | None = None, problem: str = "", answered: Collection[str] = ()
) -> Ask:
    """The question whether this call may run. `answered`: the digests of the questions of its batch that were answered.

    An answer that arrives twice must not answer the next question, which may be the same one: approving a call is one
    thing, approving it again after it may have run is another. So no two questions of a run have the same digest.
    """
    about = (call_digest(call), call.id, in_doubt.id if in_doubt else "", "edited" if problem else "")
    digest = hashlib.sha256("\0".join(about).encode()).hexdigest()
    while digest in answered:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return Ask(call=call, digest=digest, in_doubt=in_doubt, problem=problem)


def unanswered_calls(batch: Batch) -> tuple[ToolCall, ...]:
    """The calls that have no result yet, in the order in which the model made them."""
    if not batch.results:
        return batch.calls
    if len(batch.results) == len(batch.calls):
        return ()  # no call has more than one
    answered = {result.call_id for result in batch.results}
    return tuple(call for call in batch.calls if call.id not in answered)


def _answers(batch: Batch) -> Sequence[tuple[ToolCall, CallResult]]:
    """Each call that has a result, with it, in the order in which the model made them."""
    results = {result.call_id: result for result in batch.results}
    return [(call, results[call.id]) for call in batch.calls if call.id in results]


Specs = Mapping[str, ToolSpec]
"""The tools by name."""


def next_group(left: tuple[ToolCall, ...], specs: Specs, at_once: int) -> tuple[ToolCall, ...]:
    """The remaining calls to run now: consecutive reads together, a write alone, terminal calls last.

    At most `at_once` calls, and at most the tool's own `max_parallel` of each tool.
    """
    if len(left) == 1:
        return left
    first = [call for call in left if not _is(call, "terminal", specs)] or left
    reads = tuple(takewhile(lambda call: _is(call, "read", specs), first))[:at_once]
    return _within_each(reads, specs) or tuple(first[:1])


def _is(call: ToolCall, effect: ToolEffect, specs: Specs) -> bool:
    spec = specs.get(call.name)
    return spec is not None and spec.effect == effect


def _within_each(reads: tuple[ToolCall, ...], specs: Specs) -> tuple[ToolCall, ...]:
    """The calls before the first that exceeds its tool's maximum."""
    running: Counter[str] = Counter()
    for place, call in enumerate(reads):
        most = specs[call.name].max_parallel
        if most is not None and running[call.name] >= most:
            return reads[:place]
        running[call.name] += 1
    return reads


def without_terminal(batch: Batch, specs: Specs) -> Batch:
    """The batch with its terminal calls answered as not run, if the run cannot end with them.

    That is so if an earlier call failed, a terminal one succeeded, or the user said something that the model has not
    read yet.
    """
    if not batch.results:
        return batch
    left = unanswered_calls(batch)
    if not left or any(not _is(call, "terminal", specs) for call in left):
        return batch
    if terminal_success(batch, specs):
        reason = "the run is over"
    elif not all(isinstance(result, Succeeded) for result in batch.results):
        reason = "another call of the same reply failed"
    elif batch.heard:
        reason = "the user has said something new; read it first"
    else:
        return batch
    return batch.with_results(*(NotRun(call_id=call.id, reason=f"{call.name} was not run: {reason}.") for call in left))


def terminal_success(batch: Batch, specs: Specs) -> tuple[str, Succeeded] | None:
    """The terminal tool of the batch that succeeded, and its result."""
    for call, result in _answers(batch):
        if isinstance(result, Succeeded) and _is(call, "terminal", specs):
            return call.name, result
    return None


class _BatchRecord(Struct, frozen=True, kw_only=True):
    """The record of a batch: the reply with its answers, the calls that succeeded, and those that brought nothing."""

    messages: tuple[Message, ...]
    successes: tuple[Success, ...]
    attempts: tuple[Attempt, ...]


def judged_results(batch: Batch, order: tuple[Use, ...]) -> Batch:
    """The batch with its new successes judged by the rules of order."""
    if not order:
        return batch
    calls, known = {call.id: call for call in batch.calls}, {one.call_id for one in batch.judged}
    new = tuple(
        judged_by(order, calls[result.call_id], result.text)
        for result in batch.results
        if isinstance(result, Succeeded) and result.call_id not in known
    )
    return replace(batch, judged=batch.judged + new) if new else batch


def batch_record(batch: Batch) -> _BatchRecord:
    """The record of a batch with all calls answered, in the order of the calls, whichever finished first."""
    turn = batch.said.turn
    said: list[Message] = [batch.said]
    done: list[Success] = []
    vain: list[Attempt] = []
    judged = {one.call_id: one for one in batch.judged}
    for call, result in _answers(batch):
        status, text = _status_of(result), result_text(result)
        if isinstance(result, Refused):
            said.append(Tool(call_id=call.id, name=call.name, text=text, kind=result.kind, turn=turn))
        else:
            said.append(Tool(call_id=call.id, name=call.name, text=text, status=status, turn=turn))
        if isinstance(result, Succeeded):
            done.append(success_of(call, result.text, turn, judged.get(call.id)))
        elif isinstance(result, Failed | Unresolved | Refused):
            vain.append(attempt_of(call, text, status, turn))
    if batch.notice:
        said.append(User(text=batch.notice, kind=Kind.RETRY_NUDGE, turn=turn))
    said.extend(User(text=text, turn=turn) for text in batch.heard)
    return _BatchRecord(messages=tuple(said), successes=tuple(done), attempts=tuple(vain))


def _status_of(result: CallResult) -> Status:
    """The outcome as the `status` of a message."""
    match result:
        case Succeeded():
            return "succeeded"
        case Unresolved():
            return "unresolved"
        case Failed(counted=counted):
            return "failed" if counted else "final"
        case NotRun() | Refused() | Paused():
            return "not_run"
        case InDoubt():
            return "in_doubt"
        case _:
            assert_never(result)


def result_text(result: CallResult) -> str:
    """The text that tells the model of a result."""
    match result:
        case Succeeded(text=text):
            return text
        case Unresolved(message=message):
            return f"[ToolResolutionError] {message}"
        case Failed(counted=False, message=message):
            stop = "." if message[-1:].isalnum() else ""  # authors of exceptions often leave it out
            return f"[ToolFailed] {message}{stop} Do not repeat this call; adapt your plan."
        case Failed(error=error, message=message):
            return f"[ToolError] {error}: {message}"
        case NotRun(reason=reason):
            return f"[NotRun] {reason}"
        case Refused(text=text):
            return text
        case InDoubt(reason=reason):
            return f"[InDoubt] {reason}"
        case Paused(asks=asks):
            question = nudges.quote(asks.question, 2000)
            return f"[NotRun] It asked the user: {question} The user has not answered."
        case _:
            assert_never(result)


# Paused calls, which have a question for the user: which one is next, and how the run continues with the answer.


def paused_call(batch: Batch) -> Paused | None:
    """The paused call that has its answer, else the first that waits for one; None if no call is paused."""
    paused = [result for result in batch.results if isinstance(result, Paused)]
    return next((one for one in paused if one.answer), paused[0] if paused else None)


def without_lost_pauses(batch: Batch, tools: Collection[str]) -> Batch:
    """The batch with its paused calls answered as not run if their tool no longer exists."""
    gone = {call.id for call in batch.calls if call.name not in tools}
    if not gone:
        return batch
    told = (
        NotRun(
            call_id=r.call_id,
            reason=f"There is no such tool any more. {after_answer(r.asks.question, r.answer)}",
        )
        if isinstance(r, Paused) and r.call_id in gone
        else r
        for r in batch.results
    )
    return replace(batch, results=tuple(told))


def with_answer(state: State, answer: str, budget: Budget) -> State | None:
    """The state that continues the paused call with which a run ended; None if it did not end with one.

    Like any user message, the answer has its own budget; what was done before stays done.
    """
    if not isinstance(state.phase, Done) or (paused := paused_call(state.phase.batch)) is None:
        return None
    batch = state.phase.batch
    told = tuple(replace(paused, answer=answer) if result is paused else result for result in batch.results)
    return with_budget(state, budget).to(Executed(batch=replace(batch, results=told)))


def with_exchange(result: CallResult, paused: Paused) -> CallResult:
    """The result of a call that continued, after its question and the user's answer."""
    asked = after_answer(paused.asks.question, paused.answer)
    match result:
        case Succeeded(text=text):
            return replace(result, text=f"{asked}\n{text}")
        case Unresolved(message=message) | Failed(message=message):
            return replace(result, message=f"{asked}\n{message}")
        case _:
            return result


# Approvals: arguments that a person edited are checked like the model's own.


def edit_refused(phase: Edited, problem: str) -> Awaiting | Executed:
    """Ask the person once more, with what is wrong; the second time, the call is answered as not run."""
    ask, batch = phase.ask, phase.batch
    if not ask.problem:
        return Awaiting(effect=question(ask.call, ask.in_doubt, problem, batch.answered), batch=batch)
    unrun = NotRun(call_id=ask.call.id, reason=nudges.badly_edited(ask.call.name, problem))
    return Executed(batch=batch.with_results(unrun))


def edit_accepted(state: State, phase: Edited, call: ToolCall) -> State:
    """Approve the call as the person edited it.

    If it was started before, with other arguments, it gets another id: its outcome stays unknown under the old one.
    """
    batch, old = phase.batch, phase.ask.call
    if old.id in {known.id for known in state.ledger.in_doubt} and call_digest(call) != call_digest(old):
        state = state.note(ids=state.ledger.ids + 1)
        call = replace(call, id=call_id(state.ledger.ids))
    said = replace(batch.said, calls=tuple(call if c.id == old.id else c for c in batch.calls))
    return state.to(Executed(batch=replace(batch, said=said, approved=(*batch.approved, call.id))))


# Unknown outcomes: calls that were started and may have taken effect. Idempotency keys make their retries safe.


def idempotency_key(run: str, call: ToolCall) -> str:
    """The idempotency key of a call: unique, and the same however often a crash makes the run repeat the call.

    Made from the run's id, the call's id (its number within the run), the tool and the arguments.
    """
    parts = (run, call.id, call.name, call.arguments)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def without_unknown_results(batch: Batch, calls: tuple[ToolCall, ...]) -> Batch:
    """The batch with these calls unanswered again, so that a person is asked about them."""
    ids = {call.id for call in calls}
    return replace(batch, results=tuple(r for r in batch.results if not (isinstance(r, InDoubt) and r.call_id in ids)))


def unknown_result(call: ToolCall, why: str) -> InDoubt:
    """The result of a call that was started and may have taken effect; `why` says what happened."""
    return InDoubt(call_id=call.id, reason=nudges.in_doubt(call.name, why), why=why)


def unknown_outcomes_after(
    before: tuple[UnknownCall, ...], batch: Batch, results: tuple[CallResult, ...]
) -> tuple[UnknownCall, ...]:
    """The calls with an unknown outcome after these results; a success settles an earlier call that was the same."""
    if not before and InDoubt not in map(type, results):
        return ()
    calls = {call.id: call for call in batch.calls}
    for result in results:
        match result:
            case InDoubt(call_id=call_id, why=why):
                unknown = UnknownCall(**{**msgspec.structs.asdict(calls[call_id]), "why": why})
                before = (*(known for known in before if known.id != call_id), unknown)
            case Succeeded(call_id=call_id):
                before = tuple(known for known in before if call_digest(known) != call_digest(calls[call_id]))
            case _:
                pass
    return before


def settled_outcome(
    ledger: Ledger, batch: Batch, call: ToolCall, unsure: UnknownCall, found: Settled
) -> tuple[Ledger, Executed]:
    """The ledger and the phase once a person has found out whether the call `unsure` took effect.

    If it did, it counts as a success. Its result answers `call`, which was asked about, if both are the same; a
    different call is not run, because the model chose it without knowing. If it did not take effect, the call
    runs; if its tool needs approval, a person is asked first, because an approval is for one attempt.
    """
    ledger = replace(ledger, in_doubt=tuple(known for known in ledger.in_doubt if known.id != unsure.id))
    if not found.happened:
        not_happened = NotRun(call_id=unsure.id, reason=nudges.did_not_happen(unsure.name))
        return ledger, Executed(batch=_instead(batch, not_happened))
    value = msgspec.json.encode(found.result) if found.result else b"null"
    happened = Succeeded(call_id=unsure.id, text=nudges.happened(found.result), value=Raw(value))
    cleared = _instead(batch, happened)
    earlier = cleared is batch
    if earlier and call_digest(unsure) == call_digest(call):
        return ledger, Executed(batch=batch.with_results(replace(happened, call_id=call.id)))
    unrun = NotRun(call_id=call.id, reason=nudges.happened_before(call.name, unsure.arguments))
    return ledger, Executed(batch=cleared.with_results(unrun), settled=(unsure, happened) if earlier else None)


def _instead(batch: Batch, found: CallResult) -> Batch:
    """The batch with this result in place of the unknown outcome; the same object if the batch does not have it."""
    if not any(isinstance(result, InDoubt) and result.call_id == found.call_id for result in batch.results):
        return batch
    return replace(batch, results=tuple(found if r.call_id == found.call_id else r for r in batch.results))
