"""The stage `execute`: request the execution of calls, group by group, then record the results."""

from typing import assert_never

from msgspec.structs import replace

from stages import nudges
from stages.budget import out_of_time
from stages.effect import Execute, Failed, NotRun, Paused
from stages.execution import (
    Specs,
    batch_record,
    call_digest,
    judged_results,
    next_group,
    paused_call,
    question,
    terminal_success,
    unanswered_calls,
    without_lost_pauses,
    without_terminal,
    without_unknown_results,
)
from stages.halt import Halt, ToolsFailing
from stages.message import ToolCall
from stages.options import checked
from stages.order import judged_by
from stages.pipeline import Stage, on
from stages.progress import success_of, with_calls
from stages.rules import Rules, blocking_unknown_outcome, repeat_policy, unknown_outcome
from stages.state import Awaiting, Batch, Completed, Done, Executed, Ready, State, Vetted
from stages.tool import RECALL
from stages.view.recall import answer_recalls


@checked
def execute(rules: Rules) -> Stage:
    """Request the calls of a Vetted state; in an Executed one, the next group, or record the whole batch.

    The next phase is Awaiting, until every call has its result; then Ready, or Done if a terminal tool succeeded or a
    call asked the user a question. Calls for which no time is left are answered as not run. Halts with `ToolsFailing`
    once tools have failed too often. A Vetted state that `enforce` has not allowed stays as it is.
    """
    specs = {tool.name: tool for tool in rules.tools}
    recalls = RECALL in rules.tools
    repeating = repeat_policy(rules)

    @on(Vetted, Executed)
    def stage(state: State, phase: Vetted | Executed) -> State | Halt:
        match phase:
            case Vetted(allowed=False):
                return state
            case Vetted():
                batch = _capped(phase.batch, rules.calls.max_calls_per_reply)
            case Executed(batch=batch, settled=settled):
                if settled:
                    call, result = settled
                    done = success_of(call, result.text, state.ledger.turn, judged_by(rules.order, call, result.text))
                    state = replace(state, ledger=with_calls(state.ledger, (done,), (), repeating))
                # Once the time is up nobody is asked any more: the unknown outcome is how the call ended.
                if state.ledger.in_doubt and not out_of_time(state.ledger.budget):
                    batch = without_unknown_results(batch, _open(rules, state))
                batch = judged_results(batch, rules.order)
            case _:
                assert_never(phase)
        batch = _without_rejected(answer_recalls(state, batch) if recalls else batch, state, specs)
        pauses = Paused in map(type, batch.results)
        batch = without_terminal(without_lost_pauses(batch, specs) if pauses else batch, specs)
        if pauses and (paused := paused_call(batch)):
            return state.to(_questioned(state, batch, paused, specs))
        left = unanswered_calls(batch)
        if left and out_of_time(state.ledger.budget):
            batch = batch.with_results(*(NotRun(call_id=c.id, reason=nudges.time_was_up(c.name)) for c in left))
        elif left:
            return state.to(_awaiting(state, batch, next_group(left, specs, rules.calls.max_parallel), specs))
        new = batch_record(batch)
        ledger = with_calls(state.ledger, new.successes, new.attempts, repeating)
        if batch.heard:
            ledger = replace(ledger, progress=ledger.turn)  # a call that the user asks for again is not a repeat
        wrong = [r for r in batch.results if isinstance(r, Failed) and r.counted]
        errors = ledger.tool_errors + 1 if wrong else 0
        if wrong:
            ledger = replace(ledger, tool_errors=errors)
        else:
            ledger = replace(ledger, tool_errors=0, premature=0, prerequisite_violations=0)
        state = replace(state, history=state.history + new.messages, ledger=ledger)
        if ended := terminal_success(batch, specs):
            tool, result = ended
            return state.to(Done(outcome=result.ends or Completed(tool=tool, value=result.value)))
        if errors > rules.limits.max_tool_errors:
            last = wrong[-1]
            name = next(call.name for call in batch.calls if call.id == last.call_id)
            error = f"{last.error}: {last.message}"
            return ToolsFailing(tool=name, attempts=errors, error=error, call_id=last.call_id)
        return state.to(Ready())

    return stage


def _capped(batch: Batch, most: int) -> Batch:
    """The batch with the calls after the first `most` answered as not run, unless a guard already refused them."""
    if len(batch.calls) <= most:
        return batch
    excess = (call for call in unanswered_calls(batch) if call in batch.calls[most:])
    return batch.with_results(*(NotRun(call_id=c.id, reason=nudges.too_many_calls(c.name, most)) for c in excess))


def _awaiting(state: State, batch: Batch, group: tuple[ToolCall, ...], specs: Specs) -> Awaiting:
    retriable, delegates = True, False
    for call in group:
        spec = specs.get(call.name)
        unsure = unknown_outcome(spec, state.ledger) if spec is not None else None
        if (unsure or (spec is not None and spec.approval)) and call.id not in batch.approved:
            return Awaiting(effect=question(call, unsure, answered=batch.answered), batch=batch)
        retriable = retriable and spec is not None and spec.retriable
        delegates = delegates or (spec is not None and spec.delegates)
    budget = state.ledger.budget if delegates or state.ledger.budget.seconds is not None else None
    return Awaiting(effect=Execute(calls=group, run=state.run, retriable=retriable, budget=budget), batch=batch)


def _questioned(state: State, batch: Batch, paused: Paused, specs: Specs) -> Done | Awaiting:
    """The end of the run with a call's question to the user; or the call again, once the question is answered.

    The other calls of the batch wait.
    """
    if not paused.answer:
        return Done(outcome=paused.asks, batch=batch)
    call = next(call for call in batch.calls if call.id == paused.call_id)
    awaited = _awaiting(state, batch, (call,), specs)
    if not isinstance(awaited.effect, Execute):
        return awaited
    others = tuple(result for result in batch.results if result is not paused)
    return Awaiting(effect=replace(awaited.effect, continued=paused), batch=replace(batch, results=others))


def _without_rejected(batch: Batch, state: State, specs: Specs) -> Batch:
    """The batch with answers to the calls that a person has already rejected, so that nobody is asked twice."""
    no = state.ledger.rejected
    if not no:
        return batch
    unasked = (call for call in unanswered_calls(batch) if call.id not in batch.approved and call_digest(call) in no)
    wanting = (
        call
        for call in unasked
        if (spec := specs.get(call.name)) and (spec.approval or unknown_outcome(spec, state.ledger) is not None)
    )
    unrun = tuple(NotRun(call_id=call.id, reason=nudges.rejected_before(call.name)) for call in wanting)
    return batch.with_results(*unrun)


def _open(rules: Rules, state: State) -> tuple[ToolCall, ...]:
    """The calls with an unknown outcome that a person must be asked about now."""
    if rules.calls.in_doubt == "ask":
        return state.ledger.in_doubt
    needed = blocking_unknown_outcome(rules, state)
    return () if needed is None else (needed,)
