"""Deliver: put the outcome of an effect back into the state that waits for it."""

from msgspec.structs import replace
from returns.result import Failure, Result, Success

from stages.batch import digest, messages, waiting
from stages.effect import Approved, Ask, Execute, NotRun, Outcome, Rejected, Replied, Results, Send, Undelivered
from stages.halt import BackendFailed, Halt
from stages.state import Answered, Awaiting, Batch, Budget, Executed, Ledger, Ready, State


def deliver(state: State, outcome: Outcome) -> Result[State, Halt]:
    """The state after the outcome, ready for the pipeline. `Undelivered` is the Halt `BackendFailed`.

    An outcome that does not belong to what the state awaits is a mistake of the driver: ValueError.
    """
    match state.phase:
        case Awaiting() as phase:
            return _answered(state, phase, outcome)
        case phase:
            raise ValueError(f"nothing is awaited in the phase {type(phase).__name__}")


def _answered(state: State, phase: Awaiting, outcome: Outcome) -> Result[State, Halt]:
    match phase.effect, outcome:
        case Send(), Replied():
            return Success(replace(state, ledger=_charged(state.ledger, outcome)).to(Answered(reply=outcome.reply)))
        case Send(), Undelivered(fault=fault, attempts=attempts):
            return Failure(BackendFailed(fault=fault, attempts=attempts))
        case Execute(calls=calls), Results(results=results) if [c.id for c in calls] == [r.call_id for r in results]:
            batch = replace(phase.batch, results=phase.batch.results + results)
            spent = replace(state.ledger, budget=_later(state.ledger.budget, outcome.seconds))
            return Success(replace(state, ledger=spent).to(Executed(batch=batch)))
        case Ask(), Approved() | Rejected() if outcome.digest == phase.effect.digest:
            return Success(state.to(Executed(batch=_decided(phase.batch, phase.effect, outcome))))
        case _:
            raise ValueError(
                f"{type(outcome).__name__} does not answer the {type(phase.effect).__name__} that is awaited"
            )


INTERRUPTED = "the run was cancelled before its result came; it may have had its effect"


def interrupt(state: State) -> State:
    """The state of a run that is cut short: every call that was accepted is answered (D12), nothing is awaited."""
    if isinstance(state.phase, Awaiting) and state.phase.batch.calls:
        batch = state.phase.batch
        unrun = tuple(NotRun(call_id=call.id, reason=f"{call.name}: {INTERRUPTED}") for call in waiting(batch))
        answered = replace(batch, results=batch.results + unrun)
        return state.say(*messages(answered, state.ledger.turn)).to(Ready())
    return state.to(Ready())


def _charged(ledger: Ledger, outcome: Replied) -> Ledger:
    """The ledger after a reply: its tokens and seconds are spent, and it tells how many tokens a character is."""
    usage = outcome.reply.usage
    budget = _later(ledger.budget, outcome.seconds)
    if usage is None:
        return replace(ledger, budget=budget)
    used = usage.prompt + usage.completion
    left = None if budget.tokens is None else max(0, budget.tokens - used)
    known = usage.prompt > 0 and ledger.prompt_size > 0
    return replace(
        ledger,
        budget=replace(budget, tokens=left),
        tokens_used=ledger.tokens_used + used,
        tokens_per_character=usage.prompt / ledger.prompt_size if known else ledger.tokens_per_character,
    )


def _later(budget: Budget, seconds: float) -> Budget:
    return budget if budget.seconds is None else replace(budget, seconds=max(0.0, budget.seconds - seconds))


def _decided(batch: Batch, ask: Ask, decision: Approved | Rejected) -> Batch:
    if isinstance(decision, Rejected):
        reason = f"{ask.call.name} was not approved: {decision.reason}"
        return replace(batch, results=(*batch.results, NotRun(call_id=ask.call.id, reason=reason)))
    call = ask.call if decision.edited is None else replace(ask.call, arguments=decision.edited)
    calls = tuple(call if c.id == call.id else c for c in batch.calls)
    return replace(batch, calls=calls, approved=(*batch.approved, digest(call)))
