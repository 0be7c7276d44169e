"""The stage `compact`: before a turn, make the history fit its budget."""

from msgspec.structs import replace
from returns.result import Failure, Result, Success

from stages.compaction.budget import Compacted, Compactor, ContextBudget, estimate
from stages.halt import CannotFit, Halt
from stages.pipeline import Stage, on
from stages.recall import clear
from stages.state import Compaction, Ready, State


def compact(compactor: Compactor, budget: ContextBudget) -> Stage:
    """Run the compactor on a Ready state whose history is over the threshold; note in the ledger what it did.

    Halts with `CannotFit` when the history is beyond the budget and nothing may be cut any more.
    """

    @on(Ready)
    def stage(state: State, _: Ready) -> Result[State, Halt]:
        calibrated = replace(budget, tokens_per_character=state.ledger.tokens_per_character)
        if not budget.reasoning and calibrated.tokens_of(state.measure()) < calibrated.trigger:
            return Success(state.note(context_tokens=budget.tokens))
        match compactor(state.history, calibrated):
            case CannotFit() as halt:
                return Failure(halt)
            case Compacted(phase=0):
                return Success(state.note(context_tokens=budget.tokens))
            case Compacted() as compacted:
                return Success(_noted(state, compacted, calibrated))
            case other:
                raise TypeError(f"a compactor returned {type(other).__name__}; it must be Compacted(…) or CannotFit(…)")

    return stage


def _noted(state: State, compacted: Compacted, budget: ContextBudget) -> State:
    event = Compaction(
        turn=state.ledger.turn,
        phase=compacted.phase,
        tokens_before=estimate(state.history, budget),
        tokens_after=estimate(compacted.history, budget),
        budget_tokens=budget.tokens,
        messages_before=len(state.history),
        messages_after=len(compacted.history),
    )
    record = clear(state.cleared, state.history, compacted.history) if budget.recall else state.cleared
    return replace(state, history=compacted.history, cleared=record).note(
        compactions=(*state.ledger.compactions, event), context_tokens=budget.tokens
    )
