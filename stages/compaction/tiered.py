"""TieredCompact: cut what is worth least first, each tier only if the ones before were not enough."""

from itertools import chain

from msgspec import Struct

from stages.compaction import cut
from stages.compaction.budget import Compacted, CompactionResult, ContextBudget, estimate
from stages.compaction.exchange import Span, recent_from, without
from stages.halt import CannotFit
from stages.message import History

LAST_RESORT = 4
"""The phase after the seeds' three."""


class TieredCompact(Struct, frozen=True, kw_only=True):
    """The seeds' three phases over all but the last `keep_recent` turns, down to the budget's target (D19, D20).

    1: failed attempts and nudges go, tool results are truncated. 2: tool results go, a stub stays.
    3: reasoning and bare text go. 4, only where the next turn would have to compact again: whole exchanges go,
    the oldest first; and where the recent results alone are too long for the context, they are cut to fit.

    `phase_thresholds` are the fractions of the budget from which each phase is due; without them the first is
    due from the budget's own threshold, and the next ones as long as its target is not reached.
    """

    keep_recent: int = 2
    phase_thresholds: tuple[float, float, float] | None = None

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        size = budget.measure(history)
        if not self._due(1, size, budget):
            return Compacted(history=history, phase=0)
        split = recent_from(history, self.keep_recent)
        recent = history[split:]
        now = self._tiers(_Progress(old=history[:split], size=size), budget)
        if self._due(LAST_RESORT, now.size, budget):
            now = now.without(cut.oldest(now.old, budget, budget.excess(now.size, budget.target)), LAST_RESORT, budget)
            recent, saved = cut.fitted(recent, budget.excess(now.size, budget.tokens), recall=budget.recall)
            now = now.lighter(now.old, saved, LAST_RESORT)
        shorter = now.old + recent
        # What was saved is counted on the safe side; only a no needs the exact sum.
        if budget.tokens_of(now.size) > budget.tokens and (tokens := estimate(shorter, budget)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=shorter, phase=now.phase)

    def _tiers(self, now: "_Progress", budget: ContextBudget) -> "_Progress":
        found = cut.survey(now.old, recall=budget.recall)
        worthless = cut.attempts(now.old, found.worthless)
        first = now.without(worthless, 1, budget)
        # Only what would cut more needs the exact sums.
        if not self._due(2, first.size - found.excess, budget) or not self._due(
            2, first.size - cut.excess(now.old, found.long, recall=budget.recall), budget
        ):
            # Cut by index, so before anything moves; what is worthless has no result that could be long.
            return now.lighter(cut.truncated(now.old, found.long, recall=budget.recall), found.excess, 1).without(
                worthless, 1, budget
            )
        second = first.lighter(*cut.emptied(first.old, recall=budget.recall), 2)
        if not self._due(3, second.size, budget):
            return second
        second = first.lighter(second.old, budget.count(first.old) - budget.count(second.old), 2)
        if not self._due(3, second.size, budget):
            return second
        third = second.without(cut.words(second.old), 3, budget)
        return third.lighter(*cut.thoughtless(third.old), 3) if budget.reasoning else third

    def _due(self, phase: int, size: int, budget: ContextBudget) -> bool:
        tokens = budget.tokens_of(size)
        if phase == LAST_RESORT:
            return tokens > budget.tokens if self.phase_thresholds else tokens >= budget.trigger
        if self.phase_thresholds is not None:
            return tokens >= int(budget.tokens * self.phase_thresholds[phase - 1])
        return tokens >= budget.trigger if phase == 1 else tokens > budget.target


class _Progress(Struct, frozen=True, kw_only=True):
    """The old part as it is now, the characters of the whole history then, and the last phase that cut anything."""

    old: History
    size: int
    phase: int = 0

    def lighter(self, old: History, saved: int, phase: int) -> "_Progress":
        """After a phase that changed messages, and saved so many characters with that."""
        return _Progress(old=old, size=self.size - saved, phase=phase) if saved else self

    def without(self, spans: list[Span], phase: int, budget: ContextBudget) -> "_Progress":
        """After a phase that removed the messages in these spans."""
        removed = budget.count(chain.from_iterable(self.old[start:end] for start, end in spans))
        return self.lighter(without(self.old, spans), removed, phase)
