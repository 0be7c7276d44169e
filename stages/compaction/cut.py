"""What each tier cuts from the old part of a history: the oldest first, and no more than is needed.

Protected messages stay as they are.
"""

from collections.abc import Iterator
from itertools import accumulate

from msgspec.structs import replace

from stages.compaction.exchange import Span, exchange_around, exchanges, is_failed_attempt, is_protected, unprotected
from stages.compaction.measured_history import Measured
from stages.message import AROUND_MESSAGE, AROUND_RESULT, Assistant, History, Kind, Tool, size
from stages.nudges.context import recall_hint
from stages.tokens import fitting_length, length

_TRUNCATE_AT = 200
"""Characters of a tool result that truncation leaves."""

_MARK = "\n[Truncated — "
"""The mark of a truncated result; the number of removed characters follows."""

_SHORT = _TRUNCATE_AT + len(f"{_MARK}1000000 chars removed]")
"""Characters up to which truncation would make a result no shorter."""

TRUNCATED_MINIMUM = (
    AROUND_MESSAGE + AROUND_RESULT + _TRUNCATE_AT + length(f"{_MARK}{_SHORT - _TRUNCATE_AT} chars removed]")
)
"""Minimum size of a truncated answer."""

_STUB = "[Result removed to save context]"
"""The stub of a removed result: its call stays answered, so every server accepts the history."""

_STUB_LENGTH = length(_STUB)
STUB_MINIMUM = AROUND_MESSAGE + AROUND_RESULT + _STUB_LENGTH
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


def _long(messages: History) -> Iterator[tuple[int, Tool]]:
    """The results that truncation may make shorter."""
    results = Kind.TOOL_RESULT
    for index, message in enumerate(messages):
        if type(message) is Tool and len(message.text) > _SHORT and message.kind is results and not message.pinned:
            yield index, message


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


def stubbed(old: Measured, excess: int, *, recall: bool) -> Measured:
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


def bare_texts(old: Measured, excess: int) -> list[Span]:
    """The spans of bare text."""
    bare = [i for i, m in enumerate(old.messages) if type(m) is Assistant and not m.calls and not m.pinned]
    before = accumulate((old.sizes[index] for index in bare), initial=0)
    return [(index, index + 1) for index, saved in zip(bare, before, strict=False) if saved < excess]


def without_thoughts(old: Measured, excess: int) -> Measured:
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


def oldest_exchanges(old: Measured, marks: list[int], excess: int) -> list[Span]:
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


def cut_to_fit(recent: Measured, excess: int, *, recall: bool) -> Measured:
    """Long results cut by as much as saves `excess` characters together, the oldest first."""
    messages, sizes = list(recent.messages), list(recent.sizes)
    for index, result in _long(recent.messages):
        if excess <= 0:
            break
        # The mark takes room too: a result of nothing but the mark says how much.
        most = sizes[index] - excess - size(_beginning(result, 0, recall=recall))
        shorter = _beginning(result, max(_TRUNCATE_AT, fitting_length(result.text, most)), recall=recall)
        taken = size(shorter)
        if taken < sizes[index]:
            excess -= sizes[index] - taken
            messages[index], sizes[index] = shorter, taken
    return Measured(messages=tuple(messages), sizes=tuple(sizes), size=sum(sizes))


def failed_exchanges(recent: Measured, excess: int) -> list[Span]:
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
