"""What each tier cuts from the old part of a history. Protected messages stay as they are."""

from collections.abc import Iterator
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from stages.compaction.exchange import Span, exchange_around, exchanges, failed, protected
from stages.compaction.part import Part
from stages.message import CUT_PHASE, Assistant, Kind, Message, Tool, User, size
from stages.nudges import recall_hint
from stages.tokens import fitting, length

TRUNCATE_AT = 200
"""Characters of a tool result that truncation leaves (seed)."""

MARK = "\n[Truncated — "
"""How truncation is marked; the number of characters that went follows (seed)."""

SHORT = TRUNCATE_AT + len(f"{MARK}1000000 chars removed]")
"""Characters up to which truncation would make a result no shorter."""

STUB = "[Result removed to save context]"
"""What is left of a result that went: the call stays answered, so every server accepts the history (D19)."""

STUB_LENGTH = length(STUB)
RESULT = Kind.TOOL_RESULT

WORTHLESS = frozenset(kind for kind, phase in CUT_PHASE.items() if phase == 1)
"""Kinds of messages that say nothing any more once the model did right: corrections and warnings."""

Change = tuple[int, Message, int]
"""An index, the message that shall stand there, and what that takes."""


class Survey(Struct, frozen=True, kw_only=True):
    """What there is to cut, by index: corrections and warnings, and results long enough to be truncated."""

    worthless: list[int]
    long: list[int]


def survey(part: Part) -> Survey:
    """What the first tier has to do."""
    found = Survey(worthless=[], long=[])
    for index, message in enumerate(part.messages):
        if isinstance(message, Tool):
            if message.kind is not RESULT:
                found.worthless.append(index)
            elif len(message.text) > SHORT and not message.pinned:
                found.long.append(index)
        elif isinstance(message, User) and message.kind in WORTHLESS:
            found.worthless.append(index)
    return found


def opening(part: Part) -> int:
    """What the messages take that stand at the beginning and never go: the system prompt, the user's request."""
    return sum(
        size for _, size in takewhile(lambda pair: protected(pair[0]), zip(part.messages, part.sizes, strict=True))
    )


def attempts(old: Part, worthless: list[int]) -> list[Span]:
    """Where these corrections stand alone, and where replies stand that had no other answer."""
    found: list[Span] = []
    end = 0
    for index in worthless:
        if index < end:
            continue  # it stands in the exchange that was looked at last
        start, end = exchange_around(old.messages, index)
        exchange = old.messages[start:end]
        if not any(map(protected, exchange)) and (len(exchange) == 1 or failed(exchange)):
            found.append((start, end))
    return found


def truncated(old: Part, long: list[int], *, recall: bool) -> Iterator[Change]:
    """These results cut to their beginning, where that makes them shorter."""
    frames: dict[str, int] = {}
    for index in long:
        result = old.messages[index]
        # What has been cut there before has only its mark to lose.
        if isinstance(result, Tool) and not result.text.startswith(MARK, TRUNCATE_AT):
            shorter = beginning(result, TRUNCATE_AT, recall=recall)
            taken = _frame(result, frames) + length(shorter.text)
            if taken < old.sizes[index]:
                yield index, shorter, taken


def _frame(result: Tool, known: dict[str, int]) -> int:
    """What a result takes beside its text: the same for every result of a tool, so it is counted once."""
    return known.get(result.name) or known.setdefault(result.name, size(replace(result, text="")))


def beginning(result: Tool, characters: int, *, recall: bool) -> Tool:
    """A result's first characters and the mark. Its name and id stay: it still answers its call (B3)."""
    hint = recall_hint(result.call_id) if recall else ""
    text = f"{result.text[:characters]}{MARK}{len(result.text) - characters} chars removed{hint}]"
    return replace(result, text=text)


def emptied(old: Part, *, recall: bool) -> Iterator[Change]:
    """A stub for each result that is longer than that."""
    frames: dict[str, int] = {}
    for index, message in enumerate(old.messages):
        if isinstance(message, Tool) and not message.pinned and len(message.text) > len(STUB):
            text = f"{STUB[:-1]}{recall_hint(message.call_id)}]" if recall else STUB
            taken = _frame(message, frames) + (length(text) if recall else STUB_LENGTH)
            if taken < old.sizes[index]:
                yield index, replace(message, text=text), taken


def words(old: Part) -> list[Span]:
    """Where bare text stands."""
    return [(i, i + 1) for i, m in enumerate(old.messages) if isinstance(m, Assistant) and not m.calls and not m.pinned]


def thoughts(old: Part) -> Iterator[Change]:
    """What was called and said, but not what was thought before it."""
    for index, message in enumerate(old.messages):
        if isinstance(message, Assistant) and message.reasoning and not message.pinned:
            taken = old.sizes[index] - length(message.reasoning)
            yield index, replace(message, reasoning=""), taken


def oldest(old: Part, excess: int) -> list[Span]:
    """Where the oldest exchanges stand that take so many characters together."""
    found: list[Span] = []
    for start, end in exchanges(old.messages):
        if excess <= 0:
            break
        if not any(map(protected, old.messages[start:end])):
            found.append((start, end))
            excess -= sum(old.sizes[start:end])
    return found


def fitted(recent: Part, excess: int, *, recall: bool) -> Iterator[Change]:
    """The long results with as much less as saves so many characters, the oldest first."""
    for index in survey(recent).long:
        result = recent.messages[index]
        if excess <= 0 or not isinstance(result, Tool):
            return
        # The mark takes room too: a result of nothing but the mark says how much.
        most = recent.sizes[index] - excess - size(beginning(result, 0, recall=recall))
        shorter = beginning(result, max(TRUNCATE_AT, fitting(result.text, most)), recall=recall)
        taken = size(shorter)
        if taken < recent.sizes[index]:
            excess -= recent.sizes[index] - taken
            yield index, shorter, taken


def failures(recent: Part, excess: int) -> list[Span]:
    """Where failed attempts stand that take so many characters together, the oldest first.

    Of bare text its correction stays, for it says what to do by itself; a call goes with its answers.
    """
    found: list[Span] = []
    for start, end in exchanges(recent.messages):
        if excess <= 0:
            break
        exchange = recent.messages[start:end]
        if failed(exchange) and not any(map(protected, exchange)):
            said = exchange[0]
            found.append((start, end if isinstance(said, Assistant) and said.calls else start + 1))
            excess -= sum(recent.sizes[slice(*found[-1])])
    return found
