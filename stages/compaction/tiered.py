"""TieredCompact: cut what is worth least first, each tier only if the ones before were not enough."""

from msgspec import Struct

from stages.compaction import cut, survey
from stages.compaction.budget import Compacted, CompactionResult, ContextBudget
from stages.compaction.exchange import Span, marked, recent_from
from stages.compaction.listing import LIST_LIMIT, with_call_list, without_call_list
from stages.compaction.measured_history import Measured
from stages.halt import CannotFit
from stages.message import History
from stages.options.option_checks import Options
from stages.options.types import Count

_LAST_RESORT = 4
"""The phase after the three usual ones."""

_LIST = 6
"""The share of the context that a list of removed calls may take: one part in so many."""


class _Aim(Struct, frozen=True, kw_only=True):
    """How far each tier has to go.

    `rest` is the size of what stays as it is, `opening` that of the beginning. With `thresholds`, a tier that is due
    cuts all that it can, and the result is good if it fits.
    """

    budget: ContextBudget
    opening: int
    rest: int
    thresholds: tuple[float, float, float] | None

    @property
    def target(self) -> int:
        """Tokens that compaction aims at."""
        return self.budget.target(self.opening)

    def excess(self, phase: int, size: int) -> int:
        """Characters that this phase has to cut from an old part of this size; 0: it is not due."""
        if self.thresholds is None:
            return self.budget.excess(size + self.rest, self.target)
        due = self.budget.tokens_of(size + self.rest) >= int(self.budget.tokens * self.thresholds[phase - 1])
        return size if due else 0

    def missed(self, size: int) -> bool:
        """Whether this size of the old part is still too much after the tiers."""
        enough = self.target if self.thresholds is None else self.budget.tokens
        return self.budget.tokens_of(size + self.rest) > enough

    @property
    def limit(self) -> int:
        """Maximum characters of the list of calls."""
        return max(0, min(LIST_LIMIT, (self.budget.room(self.budget.tokens) - self.opening) // _LIST))

    def drop(self, size: int) -> int:
        """Characters of exchanges that have to go from an old part of this size, including room for the list."""
        return self.budget.excess(size + self.rest, self.target) + self.limit


class TieredCompact(Options, frozen=True, kw_only=True):
    """Three phases over all but the last `keep_recent` turns, down to the budget's target.

    - 1: failed attempts and nudges go, tool results are truncated.
    - 2: tool results go, a stub stays.
    - 3: reasoning and bare text go.
    - 4, where these do not reach the target: whole exchanges go, the oldest first, and leave a list of their calls.
      Where the recent turns alone are too long for the context, failed attempts go and results are cut to fit.

    Of results and text, the oldest go first, and no more than the target asks for.

    `phase_thresholds` are the fractions of the budget from which each phase is due; a phase then cuts all that it can,
    and phase 4 comes only if the run would end otherwise. Without them, phase 1 is due from the budget's own threshold,
    and the next ones until the target is reached: so compaction is rare, and a server can keep most of what it has
    evaluated (benchmarks/PREFIX.md).
    """

    keep_recent: Count = 2
    phase_thresholds: tuple[float, float, float] | None = None

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        whole = budget.measured(history)
        if budget.tokens_of(whole.size) < self._trigger(budget):
            return Compacted(history=history, phase=0)
        old, recent = whole.cut_at(recent_from(history, self.keep_recent))
        aim = _Aim(budget=budget, opening=survey.opening_size(old), rest=recent.size, thresholds=self.phase_thresholds)
        marks = marked(old.messages)
        first = old.without(survey.failed_attempts(old.messages, marks))
        now, phase = (first, 0) if _hopeless(first, aim) else _tiers(first, aim)
        phase = phase or int(first.size < old.size)
        if aim.missed(now.size):
            marks = marks if first is old else marked(first.messages)
            spans = cut.oldest_exchanges(first, marks, aim.drop(first.size))
            now, recent, phase = _last_resort(first, spans, recent, aim, phase)
        shorter = now.then(recent)
        if (tokens := budget.tokens_of(shorter.size)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=shorter.messages, phase=phase)

    def _trigger(self, budget: ContextBudget) -> int:
        return budget.trigger if self.phase_thresholds is None else int(budget.tokens * self.phase_thresholds[0])


def _tiers(old: Measured, aim: _Aim) -> tuple[Measured, int]:
    """The old part after the phases that are due, and the last phase that cut anything."""
    first, recall = old, aim.budget.recall
    # Truncating what will be stubbed anyway is wasted work: tried only where it can be enough.
    if not aim.excess(2, survey.minimum_size(old, cut.TRUNCATED_MINIMUM)):
        first = cut.truncated(old, aim.excess(1, old.size), recall=recall)
    phase = 1 if first.size < old.size else 0
    if not (excess := aim.excess(2, first.size)):
        return first, phase
    second = cut.stubbed(first, excess, recall=recall)
    phase = 2 if second.size < first.size else phase
    if not (excess := aim.excess(3, second.size)):
        return second, phase
    third = second.without(cut.bare_texts(second, excess))
    if aim.budget.reasoning:
        third = cut.without_thoughts(third, aim.excess(3, third.size))
    return third, 3 if third.size < second.size else phase


def _hopeless(old: Measured, aim: _Aim) -> bool:
    """Whether more has to go even after all phases; the cheapest question comes first."""
    if not aim.missed(cut.STUB_MINIMUM * len(old.sizes)):
        return False
    return aim.missed(survey.minimum_size_with_calls(old, cut.STUB_MINIMUM))


def _last_resort(
    old: Measured, spans: list[Span], recent: Measured, aim: _Aim, phase: int
) -> tuple[Measured, Measured, int]:
    """Both parts without the exchanges in these spans; if that is not enough, the recent part is cut as well."""
    budget = aim.budget
    kept = with_call_list(old, spans, aim.limit, recall=budget.recall)
    now, reached = _tiers(kept, aim)
    left = recent.without(cut.failed_exchanges(recent, budget.excess(now.size + recent.size, budget.tokens)))
    left = cut.cut_to_fit(left, budget.excess(now.size + left.size, budget.tokens), recall=budget.recall)
    bare = without_call_list(now) if budget.excess(now.size + left.size, budget.tokens) else now
    dropped = kept.size < old.size or left.size < recent.size or bare.size < now.size
    return bare, left, _LAST_RESORT if dropped else max(phase, reached)
