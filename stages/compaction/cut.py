"""What each tier cuts from the old part of a history. Protected messages stay as they are."""

from msgspec import Struct
from msgspec.structs import replace

from stages.compaction.budget import ContextBudget
from stages.compaction.exchange import Span, exchange_around, exchanges, failed, protected
from stages.message import CUT_PHASE, Assistant, History, Kind, Message, Tool, User
from stages.nudges import recall_hint
from stages.tokens import fitting, length

TRUNCATE_AT = 200
"""Characters of a tool result that truncation leaves (seed)."""

MARK = "\n[Truncated — "
"""How truncation is marked; the number of characters that went follows (seed)."""

MARKED = length(f"{MARK}{10**9} chars removed]")
"""What the mark takes at the most, by `tokens.length`."""

SHORT = TRUNCATE_AT + MARKED

STUB = "[Result removed to save context]"
"""What is left of a result that went: the call stays answered, so every server accepts the history (D19)."""

STUB_LENGTH = length(STUB)
RESULT = Kind.TOOL_RESULT

WORTHLESS = frozenset(kind for kind, phase in CUT_PHASE.items() if phase == 1)
"""Kinds of messages that say nothing any more once the model did right: corrections and warnings."""


class Survey(Struct, frozen=True, kw_only=True):
    """What there is to cut, by index."""

    worthless: tuple[int, ...]
    long: tuple[int, ...]
    """Results that truncation makes shorter."""
    excess: int
    """Characters that truncation saves at the least; `excess` has how many exactly."""


def survey(messages: History, *, recall: bool) -> Survey:
    """What a first tier has to do with these messages."""
    worthless, long, excess = [], [], 0
    for index, message in enumerate(messages):
        if isinstance(message, Tool):
            text = message.text
            if message.kind is not RESULT:
                worthless.append(index)
            elif len(text) > SHORT and not message.pinned:
                # No character counts less than one: that much is sure, and a tenth of the work of counting.
                saves = saved(message, TRUNCATE_AT, recall=recall) if recall else len(text) - SHORT
                if saves > 0:
                    long.append(index)
                    excess += saves
        elif isinstance(message, User) and message.kind in WORTHLESS:
            worthless.append(index)
    return Survey(worthless=tuple(worthless), long=tuple(long), excess=excess)


def saved(result: Tool, characters: int, *, recall: bool) -> int:
    """What it saves, at the least, to keep only so many characters of a result and to mark that."""
    return length(result.text[characters:]) - marked(result, recall=recall)


def marked(result: Tool, *, recall: bool) -> int:
    """What it takes at the most to say that a result was cut."""
    return MARKED + (length(recall_hint(result.call_id)) if recall else 0)


def excess(old: History, long: tuple[int, ...], *, recall: bool) -> int:
    """What it saves to cut these results to their beginning."""
    results = (old[index] for index in long)
    return sum(saved(result, TRUNCATE_AT, recall=recall) for result in results if isinstance(result, Tool))


def attempts(old: History, worthless: tuple[int, ...]) -> list[Span]:
    """Where these corrections stand alone, and where replies stand that had no other answer."""
    found: list[Span] = []
    end = 0
    for index in worthless:
        if index < end:
            continue  # it stands in the exchange that was looked at last
        start, end = exchange_around(old, index)
        exchange = old[start:end]
        if not any(map(protected, exchange)) and (len(exchange) == 1 or failed(exchange)):
            found.append((start, end))
    return found


def truncated(old: History, long: tuple[int, ...], *, recall: bool) -> History:
    """With these results cut to their beginning."""
    shorter = list(old)
    for index in long:
        result = old[index]
        if isinstance(result, Tool):
            shorter[index] = replace(result, text=beginning(result, TRUNCATE_AT, recall=recall))
    return tuple(shorter)


def beginning(result: Tool, characters: int, *, recall: bool) -> str:
    """A result's first characters and the mark. Its name and id stay: it still answers its call (B3)."""
    hint = recall_hint(result.call_id) if recall else ""
    return f"{result.text[:characters]}{MARK}{len(result.text) - characters} chars removed{hint}]"


def emptied(old: History, *, recall: bool) -> tuple[History, int]:
    """With a stub for each result, and what that saves at the least."""
    shorter: list[Message] = []
    saves = 0
    for message in old:
        if isinstance(message, Tool) and not message.pinned and len(message.text) > STUB_LENGTH:
            stub = f"{STUB[:-1]}{recall_hint(message.call_id)}]" if recall else STUB
            fewer = len(message.text) - (length(stub) if recall else STUB_LENGTH)
            if fewer > 0:
                shorter.append(replace(message, text=stub))
                saves += fewer
                continue
        shorter.append(message)
    return tuple(shorter), saves


def words(old: History) -> list[Span]:
    """Where bare text stands."""
    return [(i, i + 1) for i, m in enumerate(old) if isinstance(m, Assistant) and not m.calls and not m.pinned]


def thoughtless(old: History) -> tuple[History, int]:
    """With what was called and said, but not the thoughts before it; and what that saves."""
    shorter = tuple(replace(m, reasoning="") if isinstance(m, Assistant) and not m.pinned else m for m in old)
    return shorter, sum(length(m.reasoning) for m in old if isinstance(m, Assistant) and not m.pinned)


def oldest(old: History, budget: ContextBudget, excess: int) -> list[Span]:
    """Where the oldest exchanges stand that take so many characters together."""
    found: list[Span] = []
    for start, end in exchanges(old):
        if excess <= 0:
            break
        exchange = old[start:end]
        if not any(map(protected, exchange)):
            found.append((start, end))
            excess -= budget.count(exchange)
    return found


def fitted(recent: History, needed: int, *, recall: bool) -> tuple[History, int]:
    """With as much less of the long results, the oldest first, as saves so many characters; and what that saves."""
    shorter, saves = list(recent), 0
    for index in survey(recent, recall=recall).long:
        result = recent[index]
        if saves >= needed or not isinstance(result, Tool):
            break
        most = length(result.text) - (needed - saves) - marked(result, recall=recall)
        characters = max(TRUNCATE_AT, fitting(result.text, most))
        shorter[index] = replace(result, text=beginning(result, characters, recall=recall))
        saves += saved(result, characters, recall=recall)
    return tuple(shorter), saves
