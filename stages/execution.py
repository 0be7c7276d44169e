"""Execution: batches in progress, calls whose outcome is unknown, and calls that a person approved."""

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
from stages.message import Kind, Message, Status, Tool, ToolCall, User
from stages.nudges import after_answer, render
from stages.objection import Objection
from stages.order import Use, judged_by
from stages.progress import attempt_of, success_of
from stages.schema.canonical_json import canonical
from stages.seen import leaves
from stages.state import Attempt, Awaiting, Batch, Done, Edited, Executed, Ledger, State, Success
from stages.tool import ToolEffect, ToolSpec

# A batch of calls in progress: what runs next, and what goes into the history in the end.

_READS_AT_ONCE = 4
"""Maximum number of concurrent reads."""


def call_digest(call: ToolCall) -> str:
    """The digest of a call that an approval is bound to: of its tool and arguments, however they are written."""
    return hashlib.sha256(f"{call.name}\0{canonical(call.arguments)}".encode()).hexdigest()


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
    if len(batch.calls) == 1 == len(batch.results):
        return ((batch.calls[0], batch.results[0]),)
    results = {result.call_id: result for result in batch.results}
    return [(call, results[call.id]) for call in batch.calls if call.id in results]


Specs = Mapping[str, ToolSpec]
"""The tools by their names."""


def next_group(left: tuple[ToolCall, ...], specs: Specs, at_once: int = _READS_AT_ONCE) -> tuple[ToolCall, ...]:
    """Of the calls that are left, those to run now: neighbouring reads together, a write alone, terminal calls last.

    At most `at_once` calls, and of each tool at most its own `max_parallel`.
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
    """The calls up to the first that exceeds its tool's maximum."""
    running: Counter[str] = Counter()
    for place, call in enumerate(reads):
        most = specs[call.name].max_parallel
        if most is not None and running[call.name] >= most:
            return reads[:place]
        running[call.name] += 1
    return reads


def capped(batch: Batch, most: int) -> Batch:
    """The batch with the calls after the first `most` answered as not run, unless a guard already refused them."""
    if len(batch.calls) <= most:
        return batch
    refused = {result.call_id for result in batch.results}
    excess = (call for call in batch.calls[most:] if call.id not in refused)
    unrun = tuple(NotRun(call_id=call.id, reason=nudges.too_many_calls(call.name, most)) for call in excess)
    return replace(batch, results=batch.results + unrun) if unrun else batch


def without_terminal(batch: Batch, specs: Specs) -> Batch:
    """The batch with its terminal calls answered as not run, if there is a reason why the run cannot end with them.

    An earlier call failed, a terminal one succeeded, or the user said something that the model has not read yet.
    """
    if not batch.results:
        return batch
    left = unanswered_calls(batch)
    if not left or any(not _is(call, "terminal", specs) for call in left):
        return batch
    reason = _why_not_end(batch, specs)
    if not reason:
        return batch
    unrun = tuple(NotRun(call_id=call.id, reason=f"{call.name} was not run: {reason}.") for call in left)
    return replace(batch, results=batch.results + unrun)


def _why_not_end(batch: Batch, specs: Specs) -> str:
    """Why the terminal calls that are left do not run; empty: they do."""
    if terminal_success(batch, specs):
        return "the run is over"
    if not all(isinstance(result, Succeeded) for result in batch.results):
        return "another call of the same reply failed"
    return "the user has said something new; read it first" if batch.heard else ""


def terminal_success(batch: Batch, specs: Specs) -> tuple[str, Succeeded] | None:
    """The terminal tool of the batch that succeeded, and its result."""
    for call, result in _answers(batch):
        if isinstance(result, Succeeded) and _is(call, "terminal", specs):
            return call.name, result
    return None


class _BatchRecord(Struct, frozen=True, kw_only=True):
    """What is recorded of a batch: the reply with its answers, the calls that succeeded, those that brought nothing."""

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
    """The record of a batch, each call answered, in the order of the calls whichever finished first."""
    turn = batch.said.turn
    said: list[Message] = [batch.said]
    done: list[Success] = []
    vain: list[Attempt] = []
    judged = {one.call_id: one for one in batch.judged}
    for call, result in _answers(batch):
        said.append(_answer(call, result, turn))
        if isinstance(result, Succeeded):
            done.append(success_of(call, result.text, turn, judged.get(call.id)))
        elif isinstance(result, Failed | Unresolved | Refused):
            vain.append(attempt_of(call, result_text(result), result_status(result), turn))
    if batch.notice:
        said.append(User(text=batch.notice, kind=Kind.RETRY_NUDGE, turn=turn))
    said.extend(User(text=text, turn=turn) for text in batch.heard)
    return _BatchRecord(messages=tuple(said), successes=tuple(done), attempts=tuple(vain))


def _answer(call: ToolCall, result: CallResult, turn: int) -> Tool:
    if isinstance(result, Refused):
        return Tool(call_id=call.id, name=call.name, text=result.text, kind=result.kind, turn=turn)
    return Tool(call_id=call.id, name=call.name, text=result_text(result), status=result_status(result), turn=turn)


def result_status(result: CallResult) -> Status:
    """The outcome, as a message of the history has it."""
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
    """What the model is told of a result."""
    match result:
        case Succeeded(text=text):
            return text
        case Unresolved(message=message):
            return nudges.unresolved(message)
        case Failed(counted=False, message=message):
            return nudges.tool_failed(message)
        case Failed(error=error, message=message):
            return nudges.tool_raised(error, message)
        case NotRun(reason=reason):
            return nudges.not_run(reason)
        case Refused(text=text):
            return text
        case InDoubt(reason=reason):
            return nudges.doubtful(reason)
        case Paused(asks=asks):
            return nudges.not_run(nudges.paused(asks.question))
        case _:
            assert_never(result)


# Calls that have a question to the user: which of a batch is next, and the run as it goes on with the answer.


def paused_call(batch: Batch) -> Paused | None:
    """The call that goes on with an answer, else the first that waits for one; None: no call has a question."""
    paused = [result for result in batch.results if isinstance(result, Paused)]
    return next((one for one in paused if one.answer), paused[0] if paused else None)


def without_lost_pauses(batch: Batch, tools: Collection[str]) -> Batch:
    """The batch, in which calls with a question are given up whose tool is gone meanwhile."""
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
    return with_budget(state, budget).to(Executed(batch=replace(batch, results=told)))


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


# Approvals: arguments that a person edited, checked like the model's own.


def edit_refused(phase: Edited, problem: str) -> Awaiting | Executed:
    """The person is asked once more, and told what is wrong; after that the call is not run."""
    ask, batch = phase.ask, phase.batch
    if not ask.problem:
        return Awaiting(effect=replace(ask, problem=problem), batch=batch)
    unrun = NotRun(call_id=ask.call.id, reason=nudges.badly_edited(ask.call.name, problem))
    return Executed(batch=replace(batch, results=(*batch.results, unrun)))


def edit_accepted(phase: Edited) -> Executed:
    """The call is approved as the person wrote it."""
    batch, call = phase.batch, _edited_call(phase)
    calls = tuple(call if c.id == call.id else c for c in batch.calls)
    return Executed(batch=replace(batch, said=replace(batch.said, calls=calls), approved=(*batch.approved, call.id)))


def calls_to_judge(phase: Edited) -> tuple[ToolCall, ...]:
    """What the guards are asked about: the batch with the call as the person wrote it, without what was refused."""
    call = _edited_call(phase)
    gone = {result.call_id for result in phase.batch.results if isinstance(result, Refused)}
    return tuple(call if c.id == call.id else c for c in phase.batch.calls if c.id not in gone)


def state_for_guards(state: State, phase: Edited) -> State:
    """The state for the guards: what the person wrote is what the user said, so it is no value that nobody gave."""
    return state.say(User(text="\n".join(str(leaf) for leaf in leaves(phase.arguments)), turn=state.ledger.turn))


def problem_with_edit(objections: Sequence[Objection], phase: Edited) -> str:
    """What a guard has against this very call; empty: nothing."""
    return "\n".join(render(one) for one in objections if one.call and one.call.id == phase.ask.call.id)


def _edited_call(phase: Edited) -> ToolCall:
    return replace(phase.ask.call, arguments=phase.arguments)


# Unknown outcomes: calls that were started and may have taken effect; idempotency keys, which make retries safe.


def idempotency_key(run: str, call: ToolCall) -> str:
    """The idempotency key of a call: the same however often a crash makes the run repeat it, and of no other call.

    Made from the run's id, the call's id (its number among all calls of the run), the tool and the canonical arguments.
    """
    parts = (run, call.id, call.name, call.arguments)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


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


def settled_outcome(ledger: Ledger, batch: Batch, ask: Ask, found: Settled) -> tuple[Ledger, Executed]:
    """The ledger and the phase once somebody has found out whether the call took effect.

    If it did, it counts as a success, and its result answers the call that was asked about if that is the same call; a
    different one is not run, as the model wanted it without knowing. If it did not, the call goes on.
    """
    unsure = ask.in_doubt
    if unsure is None:
        raise ValueError("no call had an unknown outcome")
    ledger = replace(ledger, in_doubt=tuple(known for known in ledger.in_doubt if known.id != unsure.id))
    if not found.happened:
        not_happened = NotRun(call_id=unsure.id, reason=nudges.did_not_happen(unsure.name))
        return ledger, Executed(batch=_instead(batch, not_happened))
    value = msgspec.json.encode(found.result) if found.result else b"null"
    happened = Succeeded(call_id=unsure.id, text=nudges.happened(found.result), value=Raw(value))
    cleared = _instead(batch, happened)
    earlier = cleared is batch
    if earlier and call_digest(unsure) == call_digest(ask.call):
        return ledger, Executed(batch=_with_result(batch, replace(happened, call_id=ask.call.id)))
    unrun = NotRun(call_id=ask.call.id, reason=nudges.happened_before(ask.call.name, unsure.arguments))
    return ledger, Executed(batch=_with_result(cleared, unrun), settled=(unsure, happened) if earlier else None)


def _with_result(batch: Batch, result: CallResult) -> Batch:
    return replace(batch, results=(*batch.results, result))


def _instead(batch: Batch, found: CallResult) -> Batch:
    """The batch with this result in place of the unknown outcome; the same batch if it has none."""
    if not any(isinstance(result, InDoubt) and result.call_id == found.call_id for result in batch.results):
        return batch
    return replace(batch, results=tuple(found if r.call_id == found.call_id else r for r in batch.results))
