"""SlidingWindowCompact: only what the user asked and the most recent turns."""

from msgspec import Struct

from stages.compaction.budget import Compacted, CompactionResult, ContextBudget, estimate
from stages.compaction.exchange import exchanges, join, recent_turn
from stages.halt import CannotFit
from stages.message import History


class SlidingWindowCompact(Struct, frozen=True, kw_only=True):
    """From the threshold on, drop every exchange before the last `keep_recent` turns, whole (seed)."""

    keep_recent: int = 2

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        if estimate(history, budget) < budget.trigger:
            return Compacted(history=history, phase=0)
        first = recent_turn(history, self.keep_recent)
        kept = join(tuple(e for e in exchanges(history) if e.protected or e.turn >= first))
        tokens = estimate(kept, budget)
        if tokens > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        # Nothing left to drop, though over the threshold: no compaction took place (B9).
        return Compacted(history=kept, phase=1 if len(kept) < len(history) else 0)
