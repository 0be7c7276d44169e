"""A history as exchanges, and with the sizes of its messages."""

from itertools import compress
from typing import final

from msgspec import Struct

from stages.message import Assistant, History, Kind, Message, System, Tool, User, is_nudge, turn_of

# Exchanges: a history split so that no call is separated from its result.

Span = tuple[int, int]
"""A start and an end index in a history: messages that stay or go together."""


@final
class Words(Struct, frozen=True):
    """A question and its answer in a conversation, as one part that stays or goes whole.

    `pinned`: it stays. `turn` is the turn of its last message.
    """

    span: Span
    turn: int
    pinned: bool


Part = Message | Words
"""A part of a history for a compactor: a message, or, in a conversation, a question with its answer."""

Parts = tuple[Part, ...]


def messages_of(parts: Parts) -> History:
    """The parts that are messages; in a run's history, all are."""
    return tuple([part for part in parts if type(part) is not Words])


def part_turn(part: Part) -> int:
    """The turn of a part."""
    return part.turn if type(part) is Words else turn_of(part)


_KEPT = frozenset({Kind.USER_INPUT, Kind.SUMMARY})
"""Kinds of user messages that are never cut."""


_TO_TEXT = frozenset({Kind.RETRY_NUDGE, Kind.PROVENANCE_NUDGE})
"""Kinds that answer a reply without a usable call."""


def exchanges(history: Parts) -> list[Span]:
    """The whole history as exchanges: a reply and the answers to its calls, or one message alone."""
    starts = [0, *(i for i in range(1, len(history)) if not _belongs(history[i], history[i - 1]))]
    return list(zip(starts, [*starts[1:], len(history)], strict=True)) if history else []


def without(messages: History, spans: list[Span]) -> History:
    """The messages that are in none of the spans."""
    return tuple(compress(messages, kept_indexes(len(messages), spans))) if spans else messages


def kept_indexes(length: int, spans: list[Span]) -> bytearray:
    """For each index below `length`, whether it is in none of the spans."""
    kept = bytearray(b"\x01") * length
    for start, end in spans:
        kept[start:end] = bytes(end - start)
    return kept


def marked(history: Parts) -> list[int]:
    """Indexes of pinned messages, and of all that are neither replies nor tool results.

    Compares types, because `isinstance` takes five times as long on a msgspec Struct, and this runs for every message.
    """
    results = Kind.TOOL_RESULT
    return [
        index
        for index, m in enumerate(history)
        if (type(m) is not Assistant and (type(m) is not Tool or m.kind is not results)) or m.pinned
    ]


def unprotected(history: Parts, marks: list[int]) -> list[Span]:
    """The spans between exchanges with a protected message. `marks` are from `marked`."""
    gaps: list[Span] = []
    end = 0
    for index in marks:
        if index >= end and is_protected(history[index]):
            start, after = exchange_around(history, index)
            gaps.append((end, start))
            end = after
    return [(start, end) for start, end in (*gaps, (end, len(history))) if start < end]


def exchange_around(history: Parts, index: int) -> Span:
    """The exchange that this message is part of."""
    start, end = index, index + 1
    while start > 0 and _belongs(history[start], history[start - 1]):
        start -= 1
    while end < len(history) and _belongs(history[end], history[end - 1]):
        end += 1
    return start, end


def _belongs(message: Part, before: Part) -> bool:
    """Whether the message belongs to the exchange before it: a tool message, or the nudge after a bare text."""
    if type(message) is Tool:
        return True
    corrects = type(message) is User and message.kind in _TO_TEXT
    return corrects and type(before) is Assistant and not before.calls


def is_protected(message: Part) -> bool:
    """Whether the part is never cut: a system message, the user's input, a summary, anything pinned."""
    return isinstance(message, System) or message.pinned or (type(message) is User and message.kind in _KEPT)


def is_failed_attempt(exchange: Parts) -> bool:
    """Whether this is a failed attempt: a reply whose answers are all corrections."""
    answers = exchange[1:]
    return bool(answers) and all(type(answer) is not Words and is_nudge(answer) for answer in answers)


def recent_from(history: Parts, keep_recent: int) -> int:
    """The index at which the last `keep_recent` distinct turns begin; the messages before it are old.

    0 if there are no more turns than that. Turns of earlier requests count like any others.
    """
    turns = last = 0
    for index in range(len(history) - 1, -1, -1):
        turn = part_turn(history[index])
        if turn and turn != last:
            turns, last = turns + 1, turn
            if turns > keep_recent:
                return exchange_around(history, index)[1]
    return 0


# Measured history: messages with their sizes, so that no text is counted twice.


class Measured(Struct, frozen=True, kw_only=True):
    """Messages and their sizes in the prompt, in characters as `tokens.length` counts them; `size` is the sum."""

    messages: Parts
    sizes: tuple[int, ...]
    size: int

    def cut_at(self, index: int) -> tuple["Measured", "Measured"]:
        """The messages before the index, and the rest. The rest is summed, because it is usually the shorter part."""
        after = measured(self.messages[index:], self.sizes[index:])
        return Measured(messages=self.messages[:index], sizes=self.sizes[:index], size=self.size - after.size), after

    def then(self, part: "Measured") -> "Measured":
        """These messages, followed by others."""
        return Measured(
            messages=self.messages + part.messages, sizes=self.sizes + part.sizes, size=self.size + part.size
        )

    def without(self, spans: list[Span]) -> "Measured":
        """Without the messages in these spans."""
        if not spans:
            return self
        kept = kept_indexes(len(self.messages), spans)
        return measured(tuple(compress(self.messages, kept)), tuple(compress(self.sizes, kept)))

    def inserted(self, index: int, message: Message, size: int) -> "Measured":
        """With one more message of that size."""
        messages = (*self.messages[:index], message, *self.messages[index:])
        return Measured(
            messages=messages, sizes=(*self.sizes[:index], size, *self.sizes[index:]), size=self.size + size
        )


def measured(messages: Parts, sizes: tuple[int, ...]) -> Measured:
    """The messages with their sizes."""
    return Measured(messages=messages, sizes=sizes, size=sum(sizes))
