"""Survey: what a compactor wants to know of a history before it cuts. All that looks at every message is here.

The type of a message is compared, not asked for with `isinstance`: on a msgspec Struct that takes five times as long.
"""

from itertools import takewhile

from stages.compaction.exchange import Span, exchange_around, failed, protected
from stages.compaction.part import Part
from stages.message import AROUND_CALL, AROUND_MESSAGE, AROUND_RESULT, CUT_PHASE, Assistant, History, Kind, System, Tool

WORTHLESS = frozenset(kind for kind, phase in CUT_PHASE.items() if phase == 1)
"""Kinds of messages that say nothing any more once the model did right: corrections and warnings."""


def opening(part: Part) -> int:
    """What the messages take that stand at the beginning and never go: the system prompt, the user's request."""
    return sum(
        size for _, size in takewhile(lambda pair: protected(pair[0]), zip(part.messages, part.sizes, strict=True))
    )


def attempts(messages: History) -> list[Span]:
    """Where corrections and warnings stand alone, and where replies stand that had no other answer."""
    found: list[Span] = []
    end = 0
    for index in _worthless(messages):
        if index < end:
            continue  # it stands in the exchange that was looked at last
        start, end = exchange_around(messages, index)
        exchange = messages[start:end]
        if not any(map(protected, exchange)) and (len(exchange) == 1 or failed(exchange)):
            found.append((start, end))
    return found


def _worthless(messages: History) -> list[int]:
    """Where corrections and warnings stand."""
    results = Kind.TOOL_RESULT
    # By type first: next to nothing of a long run is left for the look into a set, which is dear.
    others = [
        i for i, m in enumerate(messages) if type(m) is not Assistant and (type(m) is not Tool or m.kind is not results)
    ]
    return [i for i in others if not isinstance(m := messages[i], System) and m.kind in WORTHLESS]


def least(old: Part, each: int) -> int:
    """At least what is left when no more than so much is left of a message."""
    long = [size for size in old.sizes if size > each]
    return old.size - sum(long) + each * len(long)


def answered(old: Part) -> int:
    """At least what is left by all tiers: each answer, however little of it, and the call that it answers."""
    types = list(map(type, old.messages))
    return types.count(Tool) * (AROUND_MESSAGE + AROUND_RESULT + AROUND_CALL)
