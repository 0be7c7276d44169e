"""Survey: measurements of a history before a compactor cuts it."""

from itertools import takewhile

from stages.compaction.exchange import Span, exchange_around, is_failed_attempt, is_protected
from stages.compaction.measured_history import Measured
from stages.message import CUT_PHASE, Assistant, History, Message, System

_WORTHLESS = frozenset(kind for kind, phase in CUT_PHASE.items() if phase == 1)
"""Kinds of messages that are of no use once the model got it right: corrections and warnings."""


def opening_size(part: Measured) -> int:
    """Size of the messages at the beginning that never go: the system prompt, the user's request."""
    return sum(
        size for _, size in takewhile(lambda pair: is_protected(pair[0]), zip(part.messages, part.sizes, strict=True))
    )


def failed_attempts(messages: History, marks: list[int]) -> list[Span]:
    """The spans of lone corrections and warnings, and of replies that had no other answer.

    They are searched among `marks`, made by `exchange.marked`.
    """
    found: list[Span] = []
    end = 0
    for index in marks:
        if index < end or not _worthless(messages[index]):
            continue  # it says something, or stands in the exchange that was looked at last
        start, end = exchange_around(messages, index)
        exchange = messages[start:end]
        if (len(exchange) == 1 or is_failed_attempt(exchange)) and not any(map(is_protected, exchange)):
            found.append((start, end))
    return found


def _worthless(message: Message) -> bool:
    return not isinstance(message, System) and message.kind in _WORTHLESS


def minimum_size(old: Measured, each: int) -> int:
    """Minimum size once every message is cut to at most `each`."""
    long = [size for size in old.sizes if size > each]
    return old.size - sum(long) + each * len(long)


def minimum_size_with_calls(old: Measured, each: int) -> int:
    """Minimum size once every message is cut to at most `each`, but all calls are kept.

    A reply without calls may go; so may the reasoning of any.
    """
    pairs = zip(old.messages, old.sizes, strict=True)
    more = [size - each if m.calls and not m.reasoning else -each for m, size in pairs if type(m) is Assistant]
    return minimum_size(old, each) + sum(more)
