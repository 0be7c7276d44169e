"""Compactors: what is cut from a history, and when."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile

from msgspec import Struct
from msgspec.structs import replace

from stages import nudges
from stages.compaction.budget import Compacted, CompactionResult, ContextBudget
from stages.compaction.history import (
    Measured,
    Parts,
    Span,
    Words,
    exchange_around,
    exchanges,
    is_failed_attempt,
    is_protected,
    marked,
    messages_of,
    part_turn,
    recent_from,
    unprotected,
)
from stages.halt import CannotFit
from stages.message import (
    AROUND_MESSAGE,
    AROUND_RESULT,
    CUT_PHASE,
    Assistant,
    History,
    Kind,
    System,
    Tool,
    User,
    size,
)
from stages.nudges import recall_hint
from stages.options import Count, Options
from stages.tokens import fitting_length, length

# NoCompact: the history unchanged, or an error if it does not fit.


class NoCompact(Struct, frozen=True):
    """Cut nothing. A history that exceeds the whole budget is a `CannotFit`."""

    def __call__(self, history: History, budget: ContextBudget) -> CompactionResult:
        tokens = budget.tokens_of(budget.measured(history).size)
        if tokens > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        return Compacted(history=history, phase=0)


# What each tier cuts from the old part of a history: the oldest first, and no more than is needed.
#
# Protected messages stay as they are.

_TRUNCATE_AT = 200
"""Characters of a tool result that truncation leaves."""

_MARK = "\n[Truncated — "
"""The mark of a truncated result; the number of removed characters follows."""

_SHORT = _TRUNCATE_AT + len(f"{_MARK}1000000 chars removed]")
"""Characters up to which truncation would make a result no shorter."""

_TRUNCATED_MINIMUM = (
    AROUND_MESSAGE + AROUND_RESULT + _TRUNCATE_AT + length(f"{_MARK}{_SHORT - _TRUNCATE_AT} chars removed]")
)
"""Minimum size of a truncated answer."""

_STUB = "[Result removed to save context]"
"""The stub of a removed result: its call stays answered, so every server accepts the history."""

_STUB_LENGTH = length(_STUB)
_STUB_MINIMUM = AROUND_MESSAGE + AROUND_RESULT + _STUB_LENGTH
"""Minimum size of an answer that is a stub."""


def truncated(old: Measured, excess: int, *, recall: bool) -> Measured:
    """Results truncated to their beginning, where that makes them shorter."""
    messages, sizes, frames, left = list(old.messages), list(old.sizes), dict[str, int](), excess
    marks: dict[int, tuple[str, int]] = {}  # most results of a run have one of a few lengths
    results = Kind.TOOL_RESULT
    for index, result in enumerate(old.messages):
        if left <= 0:
            break
        if (
            type(result) is not Tool
            or len(text := result.text) <= _SHORT
            or result.kind is not results
            or result.pinned
        ):
            continue
        # What has been cut there before has only its mark to lose; one character mostly tells that it was not.
        if text[_TRUNCATE_AT] == "\n" and text.startswith(_MARK, _TRUNCATE_AT):
            continue
        if recall or (measured := marks.get(len(text))) is None:
            mark = _mark(result, _TRUNCATE_AT, recall=recall)
            measured = marks[len(text)] = mark, length(mark)
        kept, (mark, marked) = text[:_TRUNCATE_AT], measured
        frame = frames.get(result.name) or frames.setdefault(result.name, _frame(result))
        # Lengths add up, so the new text is not counted as a whole.
        taken = frame + length(kept) + marked
        if (saved := sizes[index] - taken) > 0:
            left -= saved
            messages[index], sizes[index] = replace(result, text=kept + mark), taken
    return Measured(messages=tuple(messages), sizes=tuple(sizes), size=old.size - (excess - left))


def _frame(result: Tool) -> int:
    """What an answer takes beside its text."""
    return AROUND_MESSAGE + AROUND_RESULT + length(result.name)


def _beginning(result: Tool, characters: int, *, recall: bool) -> Tool:
    """A result's first characters and the mark. Its name and id stay: it still answers its call."""
    return replace(result, text=result.text[:characters] + _mark(result, characters, recall=recall))


def _mark(result: Tool, characters: int, *, recall: bool) -> str:
    """The mark after the first characters of a truncated result."""
    hint = recall_hint(result.call_id) if recall else ""
    return f"{_MARK}{len(result.text) - characters} chars removed{hint}]"


def _stubbed(old: Measured, excess: int, *, recall: bool) -> Measured:
    """A stub for each answer that is longer than one."""
    messages, sizes, frames, left = list(old.messages), list(old.sizes), dict[str, int](), excess
    text, taken = _STUB, _STUB_LENGTH
    for index, message in enumerate(old.messages):
        if type(message) is Tool and len(message.text) > _STUB_LENGTH and not message.pinned:
            if recall:
                text = f"{_STUB[:-1]}{recall_hint(message.call_id)}]"
                taken = length(text)
            frame = frames.get(message.name) or frames.setdefault(message.name, _frame(message))
            saved = sizes[index] - frame - taken
            if saved > 0:
                messages[index], sizes[index] = replace(message, text=text), frame + taken
                left -= saved
                if left <= 0:
                    break
    return Measured(messages=tuple(messages), sizes=tuple(sizes), size=old.size - (excess - left))


def _without_thoughts(old: Measured, excess: int) -> Measured:
    """Replies without their reasoning."""
    messages, sizes = list(old.messages), list(old.sizes)
    for index, message in enumerate(old.messages):
        if excess <= 0:
            break
        if type(message) is Assistant and message.reasoning and not message.pinned:
            saved = length(message.reasoning)
            excess -= saved
            messages[index], sizes[index] = replace(message, reasoning=""), sizes[index] - saved
    return Measured(messages=tuple(messages), sizes=tuple(sizes), size=sum(sizes))


def _oldest_exchanges(old: Measured, marks: list[int], excess: int) -> list[Span]:
    """The spans of the oldest exchanges that take `excess` characters together; `marks` are from `exchange.marked`."""
    found: list[Span] = []
    for start, end in unprotected(old.messages, marks):
        if excess <= 0:
            break
        last = _reaching(old.sizes, start, end, excess)
        found.append((start, exchange_around(old.messages, last)[1]))
        excess -= sum(old.sizes[start : found[-1][1]])
    return found


def _reaching(sizes: tuple[int, ...], start: int, end: int, most: int) -> int:
    """The first index from `start` on at which the sizes sum up to `most`; the last before `end` if none does."""
    low, high = start, end - 1
    while low < high:
        middle = (low + high) // 2
        part = sum(sizes[low : middle + 1])
        if part < most:
            low, most = middle + 1, most - part
        else:
            high = middle
    return low


def _cut_to_fit(recent: Measured, excess: int, *, recall: bool) -> Measured:
    """Long results cut by as much as saves `excess` characters together, the oldest first."""
    messages, sizes = list(recent.messages), list(recent.sizes)
    for index, result in enumerate(recent.messages):
        if excess <= 0:
            break
        if type(result) is not Tool or len(result.text) <= _SHORT or result.kind is not Kind.TOOL_RESULT:
            continue
        if result.pinned:
            continue
        # The mark takes room too: a result of nothing but the mark says how much.
        most = sizes[index] - excess - size(_beginning(result, 0, recall=recall))
        shorter = _beginning(result, max(_TRUNCATE_AT, fitting_length(result.text, most)), recall=recall)
        taken = size(shorter)
        if taken < sizes[index]:
            excess -= sizes[index] - taken
            messages[index], sizes[index] = shorter, taken
    return Measured(messages=tuple(messages), sizes=tuple(sizes), size=sum(sizes))


def _failed_exchanges(recent: Measured, excess: int) -> list[Span]:
    """The spans of failed attempts that take `excess` characters together, the oldest first.

    Bare text goes without its correction, which says by itself what to do; a call goes with its answers.
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
        kept = kept.without(_failed_exchanges(kept, budget.excess(kept.size, budget.tokens)))
        if (tokens := budget.tokens_of(kept.size)) > budget.tokens:
            return CannotFit(tokens=tokens, budget=budget.tokens)
        # Nothing left to drop, though over the threshold: no compaction took place.
        return Compacted(history=messages_of(kept.messages), phase=1 if len(kept.messages) < len(history) else 0)


# Call list: a message with a line for each call of removed exchanges.

_LIST_LIMIT = 4000
"""Maximum characters of a list, some sixty calls: a model makes little use of older ones."""


def _with_call_list(old: Measured, spans: list[Span], limit: int, *, recall: bool) -> Measured:
    """Without these exchanges, the oldest ones, but with a list of their calls if that is shorter.

    The list takes at most `limit` characters. It continues an earlier list, so that the prompt stays the same up to its
    end; a full list keeps its newer part. It stands where the last of the calls stood, so that nothing comes before the
    user's request for it.
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
    """The earlier list and these lines; if that is too long, the newer lines of both; else nothing."""
    whole = "\n".join((before, *_newest(newest_first, limit)))
    if length(whole) <= limit:
        return whole if "\n" in whole else ""
    head = nudges.called_before(recall=recall, all_of_them=False)
    # Cut well below the limit, so that the list can grow for a while before its start, and the prefix, changes again.
    newer = _newest(reversed(whole.split("\n")[1:]), min(limit * 3 // 4, limit - length(head)))
    return "\n".join((head, *newer)) if newer else ""


def _newest(newest_first: Iterable[str], limit: int) -> list[str]:
    """The newest lines within the limit together, in their order."""
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
                    yield nudges.called(call.id if recall else "", call.name, call.arguments, failed.get(call.id, ""))


# Survey: measurements of a history before a compactor cuts it.

_WORTHLESS = frozenset(kind for kind, phase in CUT_PHASE.items() if phase == 1)
"""Kinds of messages that are of no use once the model got it right: corrections and warnings."""


def _opening_size(part: Measured) -> int:
    """Size of the messages at the beginning that never go: the system prompt, the user's request."""
    return sum(
        size for _, size in takewhile(lambda pair: is_protected(pair[0]), zip(part.messages, part.sizes, strict=True))
    )


def failed_attempts(messages: Parts, marks: list[int]) -> list[Span]:
    """The spans of lone corrections and warnings, and of replies that had no other answer.

    They are searched among `marks`, made by `exchange.marked`.
    """
    found: list[Span] = []
    end = 0
    for index in marks:
        one = messages[index]
        if index < end or isinstance(one, System | Words) or one.kind not in _WORTHLESS:
            continue  # it says something, or stands in the exchange that was looked at last
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
    """Minimum size once every message is cut to at most `each`, but all calls are kept.

    A reply without calls may go; so may the reasoning of any.
    """
    pairs = zip(old.messages, old.sizes, strict=True)
    more = [size - each if m.calls and not m.reasoning else -each for m, size in pairs if type(m) is Assistant]
    return _minimum_size(old, each) + sum(more)


# TieredCompact: cut what is worth least first, each tier only if the ones before were not enough.

_LAST_RESORT = 4
"""The phase after the three usual ones."""

_LIST = 6
"""A list of removed calls may take one part in six of the context, so that it does not displace what it makes room for.

Both this and the three quarters to which a full list is cut are judgement, not measured."""


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
        return max(0, min(_LIST_LIMIT, (self.budget.room(self.budget.tokens) - self.opening) // _LIST))

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
        cut = self.cut(whole, budget)
        if isinstance(cut, CannotFit):
            return cut
        shorter, phase = cut
        return Compacted(history=history if shorter is whole else messages_of(shorter.messages), phase=phase)

    def cut(self, whole: Measured, budget: ContextBudget) -> tuple[Measured, int] | CannotFit:
        """The parts that fit, and how far it had to go: a conversation has spans among them, which stay or go whole."""
        due = self.phase_thresholds
        if budget.tokens_of(whole.size) < (budget.trigger if due is None else int(budget.tokens * due[0])):
            return whole, 0
        old, recent = whole.cut_at(recent_from(whole.messages, self.keep_recent))
        aim = _Aim(budget=budget, opening=_opening_size(old), rest=recent.size, thresholds=self.phase_thresholds)
        marks = marked(old.messages)
        first = old.without(failed_attempts(old.messages, marks))
        # Where more has to go even after all phases, none is tried; the cheapest question comes first.
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
    # Truncating what will be stubbed anyway is wasted work: tried only where it can be enough.
    if not aim.excess(2, _minimum_size(old, _TRUNCATED_MINIMUM)):
        first = truncated(old, aim.excess(1, old.size), recall=recall)
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
    """Both parts without the exchanges in these spans; if that is not enough, the recent part is cut as well."""
    budget = aim.budget
    kept = _with_call_list(old, spans, aim.limit, recall=budget.recall)
    now, reached = _tiers(kept, aim)
    left = recent.without(_failed_exchanges(recent, budget.excess(now.size + recent.size, budget.tokens)))
    left = _cut_to_fit(left, budget.excess(now.size + left.size, budget.tokens), recall=budget.recall)
    bare = now.without(_lists(now.messages)) if budget.excess(now.size + left.size, budget.tokens) else now
    dropped = kept.size < old.size or left.size < recent.size or bare.size < now.size
    return bare, left, _LAST_RESORT if dropped else max(phase, reached)
