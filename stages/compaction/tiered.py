"""TieredCompact: cut what is worth least first, each tier only if the ones before were not enough."""

from msgspec import Struct

from stages.compaction import cut, survey
from stages.compaction.budget import Compacted, CompactionResult, ContextBudget
from stages.compaction.exchange import recent_from
from stages.compaction.part import Part
from stages.halt import CannotFit
from stages.message import History

LAST_RESORT = 4
"""The phase after the seeds' three."""


class Aim(Struct, frozen=True, kw_only=True):
    """How far each tier has to go: `rest` are the characters of what stays as it is, `opening` those of the beginning.

    With `thresholds` a tier that is due cuts all that it can.
    """

    budget: ContextBudget
    opening: int
    rest: int
    thresholds: tuple[float, float, float] | None

    def tokens(self, size: int) -> int:
        """Tokens of the prompt with an old part of this size."""
        return self.budget.tokens_of(size + self.rest)

    def beyond(self, size: int) -> int:
        """Characters that an old part of this size has too many for the target."""
        return self.budget.excess(size + self.rest, self.budget.target(self.opening))

    def excess(self, phase: int, size: int) -> int:
        """Characters that this phase has to cut of an old part of this size; 0 where it is not due."""
        if self.thresholds is None:
            return self.beyond(size)
        due = self.tokens(size) >= int(self.budget.tokens * self.thresholds[phase - 1])
        return size if due else 0


class TieredCompact(Struct, frozen=True, kw_only=True):
    """The seeds' three phases over all but the last `keep_recent` turns, down to the budget's target (D19, D20).

    1: failed attempts and nudges go, tool results are truncated. 2: tool results go, a stub stays.
    3: reasoning and bare text go. Of results and words, the oldest go first, and no more than the target asks for.
    4, only where the next turn would have to compact again: whole exchanges go instead, the oldest first; and where
    what is recent is too long for the context by itself, failed attempts go and results are cut to fit.

    `phase_thresholds` are the fractions of the budget from which each phase is due, and then cuts all that it can;
    without them the first is due from the budget's own threshold, and the next ones as long as its target is not
    reached.

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
        aim = Aim(budget=budget, opening=survey.opening(old), rest=recent.size, thresholds=self.phase_thresholds)
        first = old.without(survey.attempts(old.messages))
        most = self._most(aim.opening, budget)
        now, phase = _tiers(first, aim, most)
        phase = phase or int(first.size < old.size)
        if aim.tokens(now.size) >= most:
            now, recent, phase = _last_resort(first, recent, aim, phase)
        shorter = now.then(recent)
        if (tokens := budget.tokens_of(shorter.size)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=shorter.messages, phase=phase)

    def _most(self, opening: int, budget: ContextBudget) -> int:
        """Tokens from which on the last resort is due."""
        if self.drop_early:
            return budget.crowded(opening)
        return budget.trigger if self.phase_thresholds is None else budget.tokens + 1

    def _trigger(self, budget: ContextBudget) -> int:
        return budget.trigger if self.phase_thresholds is None else int(budget.tokens * self.phase_thresholds[0])


def _tiers(old: Part, aim: Aim, most: int) -> tuple[Part, int]:
    """The old part after as many of the seeds' phases as are due, and the last of them that cut anything.

    What a phase can save at the most is known before. To truncate what will be emptied is work for nothing, as is all
    of it where what is left takes `most` tokens even so: then the part is returned as it is.
    """
    first, recall = old, aim.budget.recall
    if not aim.excess(2, survey.least(old, cut.TRUNCATE_AT)):
        first = cut.truncated(old, aim.excess(1, old.size), recall=recall)
    elif aim.tokens(survey.least(old, cut.SMALLEST)) >= most and aim.tokens(survey.calls(old)) >= most:
        return old, 0
    phase = 1 if first.size < old.size else 0
    if not (excess := aim.excess(2, first.size)):
        return first, phase
    second = cut.emptied(first, excess, recall=recall)
    phase = 2 if second.size < first.size else phase
    if not (excess := aim.excess(3, second.size)):
        return second, phase
    third = second.without(cut.words(second, excess))
    if aim.budget.reasoning:
        third = cut.thoughtless(third, aim.excess(3, third.size))
    return third, 3 if third.size < second.size else phase


def _last_resort(old: Part, recent: Part, aim: Aim, phase: int) -> tuple[Part, Part, int]:
    """Both parts without the oldest exchanges; where none is left that may go, with less of what is recent."""
    budget = aim.budget
    kept = old.without(cut.oldest(old, aim.beyond(old.size)))
    now, _ = _tiers(kept, aim, budget.tokens + 1)
    left = recent.without(cut.failures(recent, budget.excess(now.size + recent.size, budget.tokens)))
    left = cut.fitted(left, budget.excess(now.size + left.size, budget.tokens), recall=budget.recall)
    return now, left, LAST_RESORT if kept.size < old.size or left.size < recent.size else phase
