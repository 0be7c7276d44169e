"""A batch of calls in progress: what runs next, and what goes into the history in the end."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages.effect import CallResult, Failed, InDoubt, NotRun, Paused, Refused, Succeeded, Unresolved
from stages.message import Kind, Message, Status, Tool, ToolCall, User
from stages.nudges import beside, outcomes
from stages.policy.order import Use, answer_passes, listed_for
from stages.policy.progress import answer_digest
from stages.schema.canonical_json import canonical
from stages.state import Attempt, Batch, Success
from stages.tool import ToolEffect, ToolSpec

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
    unrun = tuple(NotRun(call_id=call.id, reason=beside.too_many_calls(call.name, most)) for call in excess)
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


class _Written(Struct, frozen=True, kw_only=True):
    """What is recorded of a batch: the reply with its answers, the calls that succeeded, those that brought nothing."""

    messages: tuple[Message, ...]
    successes: tuple[Success, ...]
    attempts: tuple[Attempt, ...]


def batch_record(batch: Batch, order: tuple[Use, ...] = ()) -> _Written:
    """The record of a batch, each call answered, in the order of the calls whichever finished first.

    `order` says of which results is recorded what they list, and which count; without it, none lists or passes yet.
    """
    turn = batch.said.turn
    said: list[Message] = [batch.said]
    done: list[Success] = []
    vain: list[Attempt] = []
    for call, result in _answers(batch):
        said.append(_answer(call, result, turn))
        if isinstance(result, Succeeded):
            answer = answer_digest(call.name, call.arguments, result.text)
            listed, passed = listed_for(order, call.name, result.text), answer_passes(order, call.name, result.text)
            done.append(
                Success(
                    name=call.name, arguments=call.arguments, answer=answer, turn=turn, listed=listed, passed=passed
                )
            )
        elif isinstance(result, Failed | Unresolved | Refused):
            vain.append(_attempt(call, result, turn))
    if batch.notice:
        said.append(User(text=batch.notice, kind=Kind.RETRY_NUDGE, turn=turn))
    said.extend(User(text=text, turn=turn) for text in batch.heard)
    return _Written(messages=tuple(said), successes=tuple(done), attempts=tuple(vain))


def _attempt(call: ToolCall, result: Failed | Unresolved | Refused, turn: int) -> Attempt:
    # What raised gave no answer: the next try may.
    unanswered = isinstance(result, Refused) or (isinstance(result, Failed) and result.counted)
    answer = "" if unanswered else answer_digest(call.name, call.arguments, result_text(result))
    return Attempt(name=call.name, arguments=call.arguments, answer=answer, turn=turn)


def _answer(call: ToolCall, result: CallResult, turn: int) -> Tool:
    if isinstance(result, Succeeded):
        return Tool(call_id=call.id, name=call.name, text=result.text, turn=turn)
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
            return outcomes.unresolved(message)
        case Failed(counted=False, message=message):
            return outcomes.tool_failed(message)
        case Failed(error=error, message=message):
            return outcomes.tool_raised(error, message)
        case NotRun(reason=reason):
            return outcomes.not_run(reason)
        case Refused(text=text):
            return text
        case InDoubt(reason=reason):
            return outcomes.doubtful(reason)
        case Paused(asks=asks):
            return outcomes.not_run(outcomes.paused(asks.question))
        case _:
            assert_never(result)
