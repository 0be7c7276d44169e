"""NoCompact: the history unchanged, or an error if it does not fit."""

from msgspec import Struct

from stages.compaction.budget import Compacted, CompactionResult, ContextBudget
from stages.halt import CannotFit
from stages.message import History


class NoCompact(Struct, frozen=True):
    """Cut nothing. A history that exceeds the whole budget is a `CannotFit`."""

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        tokens = budget.tokens_of(budget.measured(history).size)
        if tokens > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=history, phase=0)
