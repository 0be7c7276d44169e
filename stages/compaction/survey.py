"""Survey: what a compactor wants to know of a history before it cuts."""

from itertools import takewhile

from stages.compaction.exchange import Span, exchange_around, is_failed_attempt, is_protected
from stages.compaction.measured_history import Measured
from stages.message import CUT_PHASE, Assistant, History, Message, System

_WORTHLESS = frozenset(kind for kind, phase in CUT_PHASE.items() if phase == 1)
"""Kinds of messages that say nothing any more once the model did right: corrections and warnings."""


def opening_size(part: Measured) -> int:
    """What the messages take that stand at the beginning and never go: the system prompt, the user's request."""
    return sum(
        size for _, size in takewhile(lambda pair: is_protected(pair[0]), zip(part.messages, part.sizes, strict=True))
    )


def failed_attempts(messages: History, marks: list[int]) -> list[Span]:
    """Where corrections and warnings stand alone, and where replies stand that had no other answer.

    They are looked for among the `marks` that `exchange.marked` has made.
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
    """At least what is left when no more than so much is left of a message."""
    long = [size for size in old.sizes if size > each]
    return old.size - sum(long) + each * len(long)


def minimum_size_with_calls(old: Measured, each: int) -> int:
    """At least what is left when no more than so much is left of a message, but all of the calls.

    A reply without calls may go; so may what was thought before one.
    """
    pairs = zip(old.messages, old.sizes, strict=True)
    more = [size - each if m.calls and not m.reasoning else -each for m, size in pairs if type(m) is Assistant]
    return minimum_size(old, each) + sum(more)
