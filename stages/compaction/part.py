"""Part: messages of a history beside what each of them takes, so that no text is counted twice."""

from collections.abc import Iterable
from itertools import compress

from msgspec import Struct

from stages.compaction.exchange import Span, outside
from stages.message import History, Message


class Part(Struct, frozen=True, kw_only=True):
    """Messages, and what each takes in the prompt, in characters as `tokens.length` counts."""

    messages: History = ()
    sizes: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """What all of them take."""
        return sum(self.sizes)

    def cut_at(self, index: int) -> tuple["Part", "Part"]:
        """What stands before the index, and the rest."""
        before = Part(messages=self.messages[:index], sizes=self.sizes[:index])
        return before, Part(messages=self.messages[index:], sizes=self.sizes[index:])

    def then(self, part: "Part") -> "Part":
        """This part and another after it."""
        return Part(messages=self.messages + part.messages, sizes=self.sizes + part.sizes)

    def changed(self, changes: Iterable[tuple[int, Message, int]]) -> "Part":
        """With other messages at some places, and what these take."""
        messages, sizes = list(self.messages), list(self.sizes)
        for index, message, size in changes:
            messages[index], sizes[index] = message, size
        return Part(messages=tuple(messages), sizes=tuple(sizes))

    def without(self, spans: list[Span]) -> "Part":
        """Without the messages in these spans."""
        if not spans:
            return self
        kept = outside(len(self.messages), spans)
        return Part(messages=tuple(compress(self.messages, kept)), sizes=tuple(compress(self.sizes, kept)))
