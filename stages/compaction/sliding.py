"""SlidingWindowCompact: only what the user asked and the most recent turns."""

from msgspec import Struct

from stages.compaction.budget import Compacted, CompactionResult, ContextBudget, estimate
from stages.compaction.exchange import exchange_around, protected, recent_from
from stages.halt import CannotFit
from stages.message import Assistant, History, Message, Tool


class SlidingWindowCompact(Struct, frozen=True, kw_only=True):
    """From the threshold on, drop every exchange before the last `keep_recent` turns, whole (seed)."""

    keep_recent: int = 2

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        before = budget.measure(history)
        if budget.tokens_of(before) < budget.trigger:
            return Compacted(history=history, phase=0)
        split = recent_from(history, self.keep_recent)
        kept = _protected(history[:split]) + history[split:]
        # Nothing left to drop, though over the threshold: no compaction took place (B9).
        phase = 1 if len(kept) < len(history) else 0
        tokens = estimate(kept, budget) if phase else budget.tokens_of(before)
        if tokens > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=kept, phase=phase)


def _protected(old: History) -> History:
    """The exchanges with a message that stays for good."""
    kept: list[Message] = []
    end = 0
    for index in [i for i, m in enumerate(old) if not isinstance(m, Tool | Assistant) or m.pinned]:
        if index >= end and protected(old[index]):
            start, end = exchange_around(old, index)
            kept += old[start:end]
    return tuple(kept)
