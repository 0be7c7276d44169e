"""The stage `compact`: shorten the history before a turn, if it exceeds its budget."""

from stages.compaction.compactors import Compacted, Compactor
from stages.context_budget import ContextBudget
from stages.halt import CannotFit, Halt
from stages.options import checked
from stages.pipeline import Stage, on
from stages.state import Ready, State
from stages.tokens import tokens_of
from stages.view.recall import with_compaction


@checked
def compact(compactor: Compactor, budget: ContextBudget) -> Stage:
    """Run the compactor on a Ready state whose prompt reaches the threshold, and record its work in the ledger.

    Halts with `CannotFit` if the history exceeds the budget and nothing more may be cut. Raises TypeError if the
    compactor returns anything but Compacted or CannotFit.
    """
    trigger, overhead = budget.trigger, budget.meter.overhead

    @on(Ready)
    def stage(state: State, phase: Ready) -> State | Halt:
        if phase.summary:
            # The request for a summary is the conversation as it was sent, so that the server's cache is used.
            return state.note(context_tokens=budget.tokens)
        ledger = state.ledger
        characters = state.measure(reasoning=budget.reasoning)
        rate = ledger.tokens_per_character
        known = state if ledger.context_tokens == budget.tokens else state.note(context_tokens=budget.tokens)
        if tokens_of(overhead + characters, rate, ledger.report) < trigger:
            return known
        now = budget.metered(rate, ledger.report, state.sizes(reasoning=budget.reasoning))
        match compactor(state.history, now):
            case CannotFit() as halt:
                return halt
            case Compacted(phase=0):
                return known
            case Compacted() as compacted:
                return with_compaction(known, compacted.history, now, compacted.phase, now.tokens_of(characters))
            case other:
                raise TypeError(f"a compactor returned {type(other).__name__}; it must be Compacted(…) or CannotFit(…)")

    return stage
