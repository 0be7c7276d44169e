"""The compactors: NoCompact, SlidingWindowCompact, TieredCompact."""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, takewhile
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from stages import nudges
from stages.compaction.history import (
    Measured,
    Part,
    Parts,
    Span,
    Words,
    exchange_around,
    exchanges,
    is_failed_attempt,
    is_protected,
    marked,
    measured,
    messages_of,
    part_turn,
    recent_from,
    unprotected,
)
from stages.context_budget import ContextBudget
from stages.halt import CannotFit
from stages.message import (
    AROUND_MESSAGE,
    AROUND_RESULT,
    NUDGES,
    WARNINGS,
    Assistant,
    History,
    Kind,
    Message,
    System,
    Tool,
    User,
    size,
)
from stages.nudges import recall_hint
from stages.options import Count, Options
from stages.tokens import fitting_length, length

# What a compactor is.


class Compacted(Struct, frozen=True, kw_only=True):
    """A history that fits. `phase` is the compactor's last phase that cut anything; 0: nothing was cut."""

    history: History
    phase: int


CompactionResult = Compacted | CannotFit

Compactor = Callable[[History, ContextBudget], CompactionResult]
"""A pure function that keeps the laws of compaction; check your own with `forge.testing.assert_compactor_laws`."""


# NoCompact: the history unchanged, or an error if it does not fit.


class NoCompact(Struct, frozen=True):
    """Cut nothing. A history that exceeds the whole budget is a `CannotFit`."""

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        tokens = budget.tokens_of(sum(budget.sizes(history)))
        if tokens > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=history, phase=0)


# What each tier cuts from the old part of a history: the oldest first, and no more than needed. Protected messages stay
# as they are.

_TRUNCATE_AT = 200
"""Characters that truncation leaves of a tool result."""

_MARK = "\n[Truncated — "
"""The mark of a truncated result; the number of removed characters follows."""

_SHORT = _TRUNCATE_AT + len(f"{_MARK}1000000 chars removed]")
"""Maximum characters of a result that truncation would not shorten."""

_TRUNCATED_MINIMUM = (
    AROUND_MESSAGE + AROUND_RESULT + _TRUNCATE_AT + length(f"{_MARK}{_SHORT - _TRUNCATE_AT} chars removed]")
)
"""Minimum size of a truncated answer."""

_STUB = "[Result removed to save context]"
"""The text in place of a removed result, so that its call stays answered: servers refuse unanswered calls."""

_STUB_LENGTH = length(_STUB)
_STUB_MINIMUM = AROUND_MESSAGE + AROUND_RESULT + _STUB_LENGTH
"""Minimum size of an answer that is a stub."""


def _shortened(old: Measured, excess: int, shorter: Callable[[Part, int], Message | None]) -> Measured:
    """The messages, the oldest replaced by what `shorter` makes of them, until `excess` characters are saved.

    It is given a message and the size at which no other need be replaced, and returns None for one that stays.
    """
    # The oldest first: what a model has just seen, it needs most.
    messages, sizes, left = list(old.messages), list(old.sizes), excess
    for index, message in enumerate(old.messages):
        if left <= 0:
            break
        made = shorter(message, sizes[index] - left)
        if made is not None and (taken := size(made)) < sizes[index]:
            left -= sizes[index] - taken
            messages[index], sizes[index] = made, taken
    return Measured(messages=tuple(messages), sizes=tuple(sizes), size=old.size - (excess - left))


def _is_long(part: Part) -> TypeGuard[Tool]:
    """Whether this is a tool's result that truncation would shorten."""
    # Compares types, as `marked` does, and what most messages are told by comes first.
    return type(part) is Tool and len(part.text) > _SHORT and part.kind is Kind.TOOL_RESULT and not part.pinned


def _truncated(old: Measured, excess: int, *, recall: bool) -> Measured:
    """The messages with results cut to their beginning, unless they were truncated before."""

    def shorter(part: Part, _: int) -> Tool | None:
        if not _is_long(part) or part.text.startswith(_MARK, _TRUNCATE_AT):
            return None
        return _beginning(part, _TRUNCATE_AT, recall=recall)

    return _shortened(old, excess, shorter)


def _beginning(result: Tool, characters: int, *, recall: bool) -> Tool:
    """A result truncated to its first characters and the mark; it still answers its call."""
    hint = recall_hint(result.call_id) if recall else ""
    mark = f"{_MARK}{len(result.text) - characters} chars removed{hint}]"
    return replace(result, text=result.text[:characters] + mark)


def _stubbed(old: Measured, excess: int, *, recall: bool) -> Measured:
    """The messages with stubs for answers that are longer."""

    def stub(part: Part, _: int) -> Tool | None:
        if type(part) is not Tool or len(part.text) <= _STUB_LENGTH or part.pinned:
            return None
        return replace(part, text=f"{_STUB[:-1]}{recall_hint(part.call_id)}]" if recall else _STUB)

    return _shortened(old, excess, stub)


def _without_thoughts(old: Measured, excess: int) -> Measured:
    """The messages without reasoning."""

    def silent(part: Part, _: int) -> Assistant | None:
        return replace(part, reasoning="") if type(part) is Assistant and part.reasoning and not part.pinned else None

    return _shortened(old, excess, silent)


def _cut_to_fit(recent: Measured, excess: int, *, recall: bool) -> Measured:
    """The messages with long results cut by just as much as saves `excess` characters together."""

    def shorter(part: Part, enough: int) -> Tool | None:
        if not _is_long(part):
            return None
        # The mark takes room, too, so measure a result that is nothing but the mark.
        most = fitting_length(part.text, enough - size(_beginning(part, 0, recall=recall)))
        return _beginning(part, max(_TRUNCATE_AT, most), recall=recall)

    return _shortened(recent, excess, shorter)


def _oldest_exchanges(old: Measured, marks: list[int], excess: int) -> list[Span]:
    """The spans of the oldest exchanges that take `excess` characters together. `marks` are from `marked`."""
    found: list[Span] = []
    for start, end in unprotected(old.messages, marks):
        if excess <= 0:
            break
        totals = accumulate(old.sizes[start:end])
        last = next((start + n for n, total in enumerate(totals) if total >= excess), end - 1)
        found.append((start, exchange_around(old.messages, last)[1]))
        excess -= sum(old.sizes[start : found[-1][1]])
    return found


def _failed_exchanges(recent: Measured, excess: int) -> list[Span]:
    """The spans of failed attempts that take `excess` characters together, the oldest first.

    A bare text is dropped but its correction stays, because it says by itself what to do; a call is dropped with its
    answers.
    """
    found: list[Span] = []
    for start, end in exchanges(recent.messages) if excess else ():
        if excess <= 0:
            break
        exchange = recent.messages[start:end]
        if is_failed_attempt(exchange) and not any(map(is_protected, exchange)):
            said = exchange[0]
            found.append((start, end if isinstance(said, Assistant) and said.calls else start + 1))
            excess -= sum(recent.sizes[slice(*found[-1])])
    return found


# SlidingWindowCompact: keep only the user's messages and the most recent turns.


class SlidingWindowCompact(Options, frozen=True, kw_only=True):
    """From the threshold on, drop all exchanges before the last `keep_recent` turns.

    If the recent turns alone are too long for the context, their failed attempts are dropped, too.
    """

    keep_recent: Count = 2

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        whole = measured(history, budget.sizes(history))
        if budget.tokens_of(whole.size) < budget.trigger:
            return Compacted(history=history, phase=0)
        old, recent = whole.cut_at(recent_from(history, self.keep_recent))
        kept = old.without(unprotected(old.messages, marked(old.messages))).then(recent)
        kept = kept.without(_failed_exchanges(kept, budget.excess(kept.size, budget.tokens)))
        if (tokens := budget.tokens_of(kept.size)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        # If nothing was left to drop, no compaction took place, although the history is over the threshold.
        return Compacted(history=messages_of(kept.messages), phase=1 if len(kept.messages) < len(history) else 0)


# Call list: a message with a line for each call of removed exchanges.

_LIST_LIMIT = 4000
"""Maximum characters of a list, about sixty calls: models make little use of older ones."""


def _with_call_list(old: Measured, spans: list[Span], limit: int, *, recall: bool) -> Measured:
    """The messages without these exchanges, which are the oldest, but with a list of their calls if that is shorter.

    The list takes at most `limit` characters. It continues an earlier list, so that the prompt stays the same up to
    that list's end; a full list keeps its newer part. It is inserted at the place of the last call, so that no call is
    listed before the user's request that led to it.
    """
    if not spans:
        return old
    lists = _lists(old.messages[: spans[0][0]])
    last = old.messages[lists[0][0]] if lists else None
    before = last.text if type(last) is User else nudges.called_before(recall=recall, all_of_them=True)
    text = _text(before, _calls(old.messages, spans, recall=recall), limit, recall=recall)
    gone = [*lists, *spans]
    if not text:
        return old.without(gone)
    message = User(text=text, kind=Kind.SUMMARY, turn=part_turn(old.messages[spans[-1][1] - 1]))
    place = spans[-1][0] - sum(end - start for start, end in gone[:-1])
    shorter = old.without(gone).inserted(place, message, size(message))
    return shorter if shorter.size < old.size else old.without(spans)


def _lists(messages: Parts) -> list[Span]:
    """The spans of earlier call lists."""
    summaries = ((i, m) for i, m in enumerate(messages) if type(m) is User and m.kind is Kind.SUMMARY)
    return [(i, i + 1) for i, m in summaries if m.text.startswith(nudges.CALLED)]


def _text(before: str, newest_first: Iterator[str], limit: int, *, recall: bool) -> str:
    """The earlier list followed by these lines; if that is too long, the newer lines of both; empty if none fits."""
    whole = "\n".join((before, *_newest(newest_first, limit)))
    if length(whole) <= limit:
        return whole if "\n" in whole else ""
    head = nudges.called_before(recall=recall, all_of_them=False)
    # Cut well below the limit, so that the list can grow for a while before its start, and the prefix, changes again.
    newer = _newest(reversed(whole.split("\n")[1:]), min(limit * 3 // 4, limit - length(head)))
    return "\n".join((head, *newer)) if newer else ""


def _newest(newest_first: Iterable[str], limit: int) -> list[str]:
    """As many of the newest lines as fit, in their order."""
    lines: list[str] = []
    for line in newest_first:
        limit -= length(line) + length("\n")
        if limit < 0:
            break
        lines.append(line)
    return lines[::-1]


def _calls(messages: Parts, spans: list[Span], *, recall: bool) -> Iterator[str]:
    """A line for each call, the newest first."""
    for start, end in reversed(spans):
        failed: dict[str, str] = {}
        for message in reversed(messages[start:end]):
            if isinstance(message, Tool):
                status = message.status if message.kind is Kind.TOOL_RESULT else "not_run"
                failed[message.call_id] = "" if status == "succeeded" else status.replace("_", " ")
            elif isinstance(message, Assistant):
                for call in reversed(message.calls):
                    yield nudges.call_row(call.id if recall else "", call.name, call.arguments, failed.get(call.id, ""))


# Measurements of a history before it is cut.

_WORTHLESS = NUDGES | WARNINGS | {Kind.REMEMBERED}
"""Kinds of messages that are of no use once the model has got it right: corrections and warnings."""


def _opening_size(part: Measured) -> int:
    """Size of the messages at the beginning that are never cut: the system prompt, the user's request."""
    return sum(
        size for _, size in takewhile(lambda pair: is_protected(pair[0]), zip(part.messages, part.sizes, strict=True))
    )


def failed_attempts(messages: Parts, marks: list[int]) -> list[Span]:
    """The spans of lone corrections and warnings, and of replies that got no other answer.

    `marks` are from `marked`: only they are searched.
    """
    found: list[Span] = []
    end = 0
    for index in marks:
        one = messages[index]
        if index < end or isinstance(one, System | Words) or one.kind not in _WORTHLESS:
            continue  # not a correction, or part of the exchange before
        start, end = exchange_around(messages, index)
        exchange = messages[start:end]
        if (len(exchange) == 1 or is_failed_attempt(exchange)) and not any(map(is_protected, exchange)):
            found.append((start, end))
    return found


def _minimum_size(old: Measured, each: int) -> int:
    """Minimum size once every message is cut to at most `each`."""
    long = [size for size in old.sizes if size > each]
    return old.size - sum(long) + each * len(long)


def _minimum_size_with_calls(old: Measured, each: int) -> int:
    """Minimum size once every message is cut to at most `each`, except for replies with calls; other replies are gone.

    Replies with reasoning count as gone, too, since most of them may be reasoning: this is a lower bound.
    """
    pairs = zip(old.messages, old.sizes, strict=True)
    more = [size - each if m.calls and not m.reasoning else -each for m, size in pairs if type(m) is Assistant]
    return _minimum_size(old, each) + sum(more)


# TieredCompact: cut the least valuable first; each tier acts only if the ones before were not enough.

_LAST_RESORT = 4
"""The phase after the three usual ones."""

_LIST = 6
"""A list of removed calls may take one part in six of the context, so that it does not displace what it makes room for.

Both this and the three quarters to which a full list is cut are judgement, not measured."""


class _Aim(Struct, frozen=True, kw_only=True):
    """How much each tier has to cut from the old part of the history.

    `rest` is the size of the recent part, `opening` that of the beginning that is never cut. With `thresholds`, a tier
    that is due cuts all that it can, and the result only has to fit the context.
    """

    budget: ContextBudget
    opening: int
    rest: int
    thresholds: tuple[float, float, float] | None

    @property
    def target(self) -> int:
        """Tokens of the prompt that compaction aims at."""
        return self.budget.target(self.opening)

    def excess(self, phase: int, size: int) -> int:
        """Characters that this phase has to cut from an old part of this size; 0 if it is not due."""
        if self.thresholds is None:
            return self.budget.excess(size + self.rest, self.target)
        due = self.budget.tokens_of(size + self.rest) >= int(self.budget.tokens * self.thresholds[phase - 1])
        return size if due else 0

    def missed(self, size: int) -> bool:
        """Whether an old part of this size is still too long after the tiers."""
        enough = self.target if self.thresholds is None else self.budget.tokens
        return self.budget.tokens_of(size + self.rest) > enough

    @property
    def limit(self) -> int:
        """Maximum characters of the list of calls."""
        return max(0, min(_LIST_LIMIT, (self.budget.room(self.budget.tokens) - self.opening) // _LIST))

    def drop(self, size: int) -> int:
        """Characters of exchanges to drop from an old part of this size, including room for the list."""
        return self.budget.excess(size + self.rest, self.target) + self.limit


class TieredCompact(Options, frozen=True, kw_only=True):
    """Shorten everything before the last `keep_recent` turns to the budget's target, in up to four phases.

    - 1: drop failed attempts and nudges; truncate tool results.
    - 2: replace tool results by stubs.
    - 3: drop reasoning and bare text.
    - 4, if these do not reach the target: drop whole exchanges, the oldest first, leaving a list of their calls. If
      the recent turns alone are too long for the context, drop their failed attempts and cut their results to fit.

    Results and texts are cut from the oldest on, and only until the target is reached.

    `phase_thresholds` are the fractions of the budget at which phases 1 to 3 begin. A phase then cuts all that it can,
    and phase 4 acts only if the run would otherwise halt. Without them, phase 1 begins at the budget's threshold, and
    the others follow until the target is reached: so compaction is rare, and a server can reuse most of its prefix
    cache (benchmarks/PREFIX.md).
    """

    keep_recent: Count = 2
    phase_thresholds: tuple[float, float, float] | None = None

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        whole = measured(history, budget.sizes(history))
        cut = self.cut(whole, budget)
        if isinstance(cut, CannotFit):
            return cut
        shorter, phase = cut
        return Compacted(history=history if shorter is whole else messages_of(shorter.messages), phase=phase)

    def cut(self, whole: Measured, budget: ContextBudget) -> tuple[Measured, int] | CannotFit:
        """The parts shortened to fit, and the last phase that cut anything."""
        due = self.phase_thresholds
        if budget.tokens_of(whole.size) < (budget.trigger if due is None else int(budget.tokens * due[0])):
            return whole, 0
        old, recent = whole.cut_at(recent_from(whole.messages, self.keep_recent))
        aim = _Aim(budget=budget, opening=_opening_size(old), rest=recent.size, thresholds=self.phase_thresholds)
        marks = marked(old.messages)
        first = old.without(failed_attempts(old.messages, marks))
        # If phases 1 to 3 cannot be enough, skip them; check the cheapest bound first.
        hopeless = aim.missed(_STUB_MINIMUM * len(first.sizes)) and aim.missed(
            _minimum_size_with_calls(first, _STUB_MINIMUM)
        )
        now, phase = (first, 0) if hopeless else _tiers(first, aim)
        phase = phase or int(first.size < old.size)
        if aim.missed(now.size):
            marks = marks if first is old else marked(first.messages)
            spans = _oldest_exchanges(first, marks, aim.drop(first.size))
            now, recent, phase = _last_resort(first, spans, recent, aim, phase)
        shorter = now.then(recent)
        if (tokens := budget.tokens_of(shorter.size)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return shorter, phase


def _tiers(old: Measured, aim: _Aim) -> tuple[Measured, int]:
    """The old part after the phases that are due, and the last phase that cut anything."""
    first, recall = old, aim.budget.recall
    # Truncate only if that can be enough: otherwise the results become stubs anyway.
    if not aim.excess(2, _minimum_size(old, _TRUNCATED_MINIMUM)):
        first = _truncated(old, aim.excess(1, old.size), recall=recall)
    phase = 1 if first.size < old.size else 0
    if not (excess := aim.excess(2, first.size)):
        return first, phase
    second = _stubbed(first, excess, recall=recall)
    phase = 2 if second.size < first.size else phase
    if not (excess := aim.excess(3, second.size)):
        return second, phase
    bare = [i for i, m in enumerate(second.messages) if type(m) is Assistant and not m.calls and not m.pinned]
    before = accumulate((second.sizes[index] for index in bare), initial=0)
    third = second.without([(i, i + 1) for i, saved in zip(bare, before, strict=False) if saved < excess])
    if aim.budget.reasoning:
        third = _without_thoughts(third, aim.excess(3, third.size))
    return third, 3 if third.size < second.size else phase


def _last_resort(
    old: Measured, spans: list[Span], recent: Measured, aim: _Aim, phase: int
) -> tuple[Measured, Measured, int]:
    """The old part without these exchanges, the recent part, cut as well if that is not enough, and the phase."""
    budget = aim.budget
    kept = _with_call_list(old, spans, aim.limit, recall=budget.recall)
    now, reached = _tiers(kept, aim)
    left = recent.without(_failed_exchanges(recent, budget.excess(now.size + recent.size, budget.tokens)))
    left = _cut_to_fit(left, budget.excess(now.size + left.size, budget.tokens), recall=budget.recall)
    bare = now.without(_lists(now.messages)) if budget.excess(now.size + left.size, budget.tokens) else now
    dropped = kept.size < old.size or left.size < recent.size or bare.size < now.size
    return bare, left, _LAST_RESORT if dropped else max(phase, reached)
