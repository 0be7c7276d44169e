"""Deliver: put the outcome of an effect back into the state that awaits it."""

from msgspec.structs import replace
from returns.result import Failure, Result, Success

from stages import nudges
from stages.budget import charged
from stages.effect import (
    Approved,
    Ask,
    CallResult,
    Effect,
    Execute,
    InDoubt,
    NotRun,
    Outcome,
    Rejected,
    Replied,
    Reply,
    Results,
    Send,
    Settled,
    Spending,
    Unanswered,
    Undelivered,
    Usage,
)
from stages.execution import (
    batch_record,
    call_digest,
    settled_outcome,
    unanswered_calls,
    unknown_outcomes_after,
    unknown_result,
    with_exchange,
)
from stages.halt import ApprovalNeeded, BackendFailed, Halt, OutcomeUnknown
from stages.message import ToolCall
from stages.progress import RepeatPolicy, success_of, with_calls
from stages.state import MAIN, Answered, Awaiting, Batch, Edited, Executed, Ledger, Ready, State
from stages.tokens import Report, calibrated, length, tokens_of
from stages.view.summary import summarized, unsummarized


def deliver(state: State, outcome: Outcome) -> Result[State, Halt]:
    """The state after the outcome, ready for the pipeline; or the Halt that ends the run.

    `Undelivered` halts as `BackendFailed`, or means that there is no summary. `Unanswered` halts as `ApprovalNeeded`,
    or as `OutcomeUnknown` if the question was about a call in doubt. If the server refuses tools, the next turn writes
    them into the prompt. Raises ValueError for an outcome of another effect than the awaited one.
    """
    match state.phase:
        case Awaiting(effect=effect) as phase:
            state = state.note(effects=state.ledger.effects + 1)
        case other:
            raise ValueError(f"nothing is awaited in the phase {type(other).__name__}")
    match outcome:
        case Replied() if isinstance(effect, Send):
            return Success(_replied(state, phase, outcome))
        case Results(results=back) if isinstance(effect, Execute) and (
            [result.call_id for result in back] == [call.id for call in effect.calls]
        ):
            return Success(_executed(state, phase.batch, effect, outcome))
        case Undelivered() if isinstance(effect, Send):
            fault = outcome.fault
            if phase.summary:
                return Success(unsummarized(state, f"it did not come: {fault.detail}"))
            # Once, because a refusal of a prompt without a tools field has another cause; and only for the run's own
            # model, because `fallback` is about its server.
            if fault.kind == "no_tools" and not state.ledger.fallback and phase.asked.target == MAIN:
                return Success(state.note(fallback=fault.detail).to(Ready()))
            return Failure(BackendFailed(fault=fault, attempts=outcome.attempts))
        case Approved() | Rejected() if isinstance(effect, Ask) and outcome.digest == effect.digest:
            return Success(_decided(state, _with_answer(phase.batch, effect), effect, outcome))
        case Settled() if isinstance(effect, Ask) and effect.in_doubt and outcome.digest == effect.digest:
            batch = _with_answer(phase.batch, effect)
            ledger, executed = settled_outcome(state.ledger, batch, effect.call, effect.in_doubt, outcome)
            return Success(replace(state, ledger=ledger, phase=executed))
        case Unanswered() if isinstance(effect, Ask) and outcome.digest == effect.digest:
            call, unsure, reason = effect.call, effect.in_doubt, outcome.reason
            if unsure is None:
                return Failure(ApprovalNeeded(tool=call.name, arguments=call.arguments, reason=reason))
            tool, arguments, why = unsure.name, unsure.arguments, unsure.why
            return Failure(OutcomeUnknown(tool=tool, arguments=arguments, call_id=unsure.id, why=why, reason=reason))
        case _:
            problem = f"{type(outcome).__name__} does not answer the {type(effect).__name__} that is awaited"
            if isinstance(effect, Send):
                problem += "; the `send` of a backend returns Replied or Undelivered of stages.effect"
            raise ValueError(problem)


def _replied(state: State, phase: Awaiting, outcome: Replied) -> State:
    """The state after a reply, whose tokens, seconds and cost are charged."""
    ledger, reported, usage = state.ledger, outcome.reply.usage, Usage()
    if reported is not None and reported.prompt + reported.completion > 0:
        # Negative counts are ignored, because a budget only shrinks.
        prompt, completion = max(0, reported.prompt), max(0, reported.completion)
        usage = Usage(prompt=prompt, completion=completion, cached=max(0, reported.cached))
        if phase.asked.target == MAIN:  # another model counts tokens differently
            new = Report(characters=ledger.prompt_size, tokens=prompt)
            rate, report = calibrated(ledger.tokens_per_character, ledger.report, new, state.prompt.size)
            ledger = replace(ledger, tokens_per_character=rate, report=report)
    elif ledger.budget.tokens is not None or ledger.budget.cost is not None:
        usage = _estimated(ledger, outcome.reply)
    spent = Spending(tokens=usage.prompt + usage.completion, cost=ledger.budget.price.of(usage))
    ledger = charged(ledger, spent, outcome.seconds)
    if phase.summary:
        return summarized(replace(state, ledger=ledger), phase.summary, outcome.reply)
    return replace(state, ledger=ledger, phase=Answered(reply=outcome.reply, asked=phase.asked))


def _estimated(ledger: Ledger, reply: Reply) -> Usage:
    """The tokens of a reply whose server counts none: a budget would otherwise never be spent."""
    rate = ledger.tokens_per_character
    said = [reply.text, reply.reasoning, *(part for call in reply.calls for part in (call.name, call.arguments))]
    return Usage(
        prompt=tokens_of(ledger.prompt_size, rate, ledger.report),
        completion=tokens_of(length("".join(said)), rate, Report()),
    )


def _executed(state: State, batch: Batch, effect: Execute, outcome: Results) -> State:
    back, ledger, approved = outcome.results, state.ledger, batch.approved
    if paused := effect.continued:
        back = tuple(with_exchange(result, paused) for result in back)
    if approved:
        # An approval holds for one try: a call that is in doubt again needs another one.
        unsure = {result.call_id for result in back if isinstance(result, InDoubt)}
        approved = tuple(call_id for call_id in approved if call_id not in unsure)
    came = replace(batch, results=batch.results + back, approved=approved, heard=batch.heard + outcome.heard)
    paid = charged(ledger, outcome.spent + Spending(tool_calls=len(back)), outcome.seconds)
    doubtful = unknown_outcomes_after(ledger.in_doubt, batch, back)
    return replace(state, ledger=replace(paid, in_doubt=doubtful), phase=Executed(batch=came))


_NOT_READ = "the run was interrupted before its result came"
_NOT_STARTED = "the run was interrupted before it was started"


def interrupt(state: State, *, begun: bool = True) -> State:
    """The state of a run that is cut short: every accepted call is answered, and successes are recorded.

    `begun`: the awaited effect may have been started.
    """
    phase = state.phase
    if not isinstance(phase, Awaiting | Edited | Executed) or not phase.batch.calls:
        return state.to(Ready())
    awaited = phase.effect if begun and isinstance(phase, Awaiting) else None
    unrun = tuple(cut_short(call, awaited) for call in unanswered_calls(phase.batch))
    batch = phase.batch.with_results(*unrun)
    new = batch_record(batch)
    settled = phase.settled if isinstance(phase, Executed) else None
    earlier = (success_of(settled[0], settled[1].text, state.ledger.turn),) if settled else ()
    ledger = with_calls(state.ledger, earlier + new.successes, new.attempts, RepeatPolicy())
    doubtful = unknown_outcomes_after(ledger.in_doubt, batch, unrun)
    return replace(state, ledger=replace(ledger, in_doubt=doubtful)).say(*new.messages).to(Ready())


def reopened(state: State) -> State:
    """The state from which another run may continue, with its own model, server and tools.

    An unanswered request is refunded and written anew, because it was written for another server. Calls that may have
    been started are in doubt unless they can be retried. Open questions stay open, and rejected calls may be asked
    about again.
    """
    if state.ledger.rejected:
        state = state.note(rejected=())
    match state.phase:
        case Awaiting(effect=Send(), summary=summary, asked=asked):
            unpaid = charged(state.ledger, Spending(calls=-1))
            before = replace(state, ledger=replace(unpaid, turn=unpaid.turn - 1))
            return before.to(Ready(summary=summary, target=asked.target))
        case Awaiting(effect=Execute(retriable=False)):
            return interrupt(state)
        case _:
            return state


def asking_again(state: State, halt: Halt) -> State | None:
    """The state in which a run that halted without a person's decision asks for it again; None for any other halt.

    A rejected call whose outcome is unknown was left open, and is asked about again. Other rejections stay.
    """
    match halt, state.phase:
        case ApprovalNeeded() | OutcomeUnknown(), Awaiting(effect=Ask()):
            return state
        case OutcomeUnknown(), _:
            unknown = {call_digest(call) for call in state.ledger.in_doubt}
            rejected = tuple(digest for digest in state.ledger.rejected if digest not in unknown)
            return None if rejected == state.ledger.rejected else state.note(rejected=rejected)
        case _:
            return None


def cut_short(call: ToolCall, awaited: Effect | None) -> CallResult:
    """The answer to a call of an interrupted run."""
    if not isinstance(awaited, Execute) or call not in awaited.calls:
        return NotRun(call_id=call.id, reason=f"{call.name}: {_NOT_STARTED}")
    if awaited.retriable:
        return NotRun(call_id=call.id, reason=f"{call.name}: {_NOT_READ}")
    return unknown_result(call, _NOT_READ)


def _with_answer(batch: Batch, ask: Ask) -> Batch:
    return replace(batch, answered=(*batch.answered, ask.digest))


def _decided(state: State, batch: Batch, ask: Ask, decision: Approved | Rejected) -> State:
    if isinstance(decision, Approved):
        if decision.edited is not None:
            return state.to(Edited(batch=batch, ask=ask, arguments=decision.edited))
        return state.to(Executed(batch=replace(batch, approved=(*batch.approved, ask.call.id))))
    reason = nudges.not_approved(ask.call.name, decision.reason, in_doubt=ask.in_doubt is not None)
    unrun = NotRun(call_id=ask.call.id, reason=reason)
    remembered = state.note(rejected=(*state.ledger.rejected, call_digest(ask.call)))
    return remembered.to(Executed(batch=batch.with_results(unrun)))
