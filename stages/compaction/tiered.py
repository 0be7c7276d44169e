"""TieredCompact: cut what is worth least first, each tier only if the ones before were not enough."""

from msgspec import Struct

from stages.compaction import cut
from stages.compaction.budget import Compacted, CompactionResult, ContextBudget
from stages.compaction.exchange import recent_from
from stages.compaction.part import Part
from stages.halt import CannotFit
from stages.message import History

LAST_RESORT = 4
"""The phase after the seeds' three."""


class TieredCompact(Struct, frozen=True, kw_only=True):
    """The seeds' three phases over all but the last `keep_recent` turns, down to the budget's target (D19, D20).

    1: failed attempts and nudges go, tool results are truncated. 2: tool results go, a stub stays.
    3: reasoning and bare text go. 4, only where the next turn would have to compact again: whole exchanges go, the
    oldest first; and where what is recent is too long for the context by itself, failed attempts go and results are
    cut to fit.

    `phase_thresholds` are the fractions of the budget from which each phase is due; without them the first is
    due from the budget's own threshold, and the next ones as long as its target is not reached.

    `drop_early` has phase 4 come as soon as one of the next turns would have to compact again. With a low target it
    halves what a server has to evaluate again in a long run (benchmarks/PREFIX.md), but the model forgets sooner
    what it called, and with what.
    """

    keep_recent: int = 2
    phase_thresholds: tuple[float, float, float] | None = None
    drop_early: bool = False

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        whole = budget.measured(history)
        if budget.tokens_of(whole.size) < self._trigger(budget):
            return Compacted(history=history, phase=0)
        old, recent = whole.cut_at(recent_from(history, self.keep_recent))
        opening = cut.opening(old)
        now, phase = self._tiers(old, opening, recent.size, budget)
        size = now.size + recent.size
        if budget.tokens_of(size) >= self._most(opening, budget):
            kept = now.without(cut.oldest(now, budget.excess(size, budget.target(opening))))
            recent = recent.without(cut.failures(recent, budget.excess(kept.size + recent.size, budget.tokens)))
            excess = budget.excess(kept.size + recent.size, budget.tokens)
            recent = recent.changed(cut.fitted(recent, excess, recall=budget.recall))
            now, phase = kept, LAST_RESORT if kept.size + recent.size < size else phase
        shorter = now.then(recent)
        if (tokens := budget.tokens_of(shorter.size)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=shorter.messages, phase=phase)

    def _tiers(self, old: Part, opening: int, rest: int, budget: ContextBudget) -> tuple[Part, int]:
        """The old part after as many of the seeds' phases as are due, and the last that cut anything."""

        def due(phase: int, size: int) -> bool:
            tokens = budget.tokens_of(size + rest)
            if self.phase_thresholds is not None:
                return tokens >= int(budget.tokens * self.phase_thresholds[phase - 1])
            return tokens > budget.target(opening)

        found = cut.survey(old)
        worthless = cut.attempts(old, found.worthless)
        first = old.without(worthless)
        # Truncating what will be emptied is work for nothing: only if it can be enough is it tried.
        saved = sum(old.sizes[index] - cut.TRUNCATE_AT for index in found.long)
        if not due(2, first.size - saved):
            first = old.changed(cut.truncated(old, found.long, recall=budget.recall)).without(worthless)
        phase = 1 if first.size < old.size else 0
        if not due(2, first.size):
            return first, phase
        second = first.changed(cut.emptied(first, recall=budget.recall))
        phase = 2 if second.size < first.size else phase
        if not due(3, second.size):
            return second, phase
        third = second.without(cut.words(second))
        third = third.changed(cut.thoughts(third)) if budget.reasoning else third
        return third, 3 if third.size < second.size else phase

    def _most(self, opening: int, budget: ContextBudget) -> int:
        """Tokens from which on the last resort is due."""
        if self.drop_early:
            return budget.crowded(opening)
        return budget.trigger if self.phase_thresholds is None else budget.tokens + 1

    def _trigger(self, budget: ContextBudget) -> int:
        return budget.trigger if self.phase_thresholds is None else int(budget.tokens * self.phase_thresholds[0])
