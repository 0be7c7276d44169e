"""SlidingWindowCompact: keep only the user's messages and the most recent turns."""

from stages.compaction.budget import Compacted, CompactionResult, ContextBudget
from stages.compaction.cut import failed_exchanges
from stages.compaction.exchange import marked, recent_from, unprotected
from stages.halt import CannotFit
from stages.message import History
from stages.options.option_checks import Options
from stages.options.types import Count


class SlidingWindowCompact(Options, frozen=True, kw_only=True):
    """From the threshold on, drop whole exchanges before the last `keep_recent` turns.

    Where the recent turns alone are too long for the context, their failed attempts go too.
    """

    keep_recent: Count = 2

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        whole = budget.measured(history)
        if budget.tokens_of(whole.size) < budget.trigger:
            return Compacted(history=history, phase=0)
        old, recent = whole.cut_at(recent_from(history, self.keep_recent))
        kept = old.without(unprotected(old.messages, marked(old.messages))).then(recent)
        kept = kept.without(failed_exchanges(kept, budget.excess(kept.size, budget.tokens)))
        if (tokens := budget.tokens_of(kept.size)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        # Nothing left to drop, though over the threshold: no compaction took place.
        return Compacted(history=kept.messages, phase=1 if len(kept.messages) < len(history) else 0)
