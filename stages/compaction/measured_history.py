"""Measured history: messages with their sizes, so that no text is counted twice."""

from itertools import compress

from msgspec import Struct

from stages.compaction.exchange import Span, kept_indexes
from stages.message import History, Message


class Measured(Struct, frozen=True, kw_only=True):
    """Messages and the size of each in the prompt, in characters as `tokens.length` counts; `size` is the sum."""

    messages: History
    sizes: tuple[int, ...]
    size: int

    def cut_at(self, index: int) -> tuple["Measured", "Measured"]:
        """The messages before the index, and the rest, which is the shorter part of a long history."""
        rest = self.sizes[index:]
        after = Measured(messages=self.messages[index:], sizes=rest, size=sum(rest))
        return Measured(messages=self.messages[:index], sizes=self.sizes[:index], size=self.size - after.size), after

    def then(self, part: "Measured") -> "Measured":
        """These messages and then others."""
        return Measured(
            messages=self.messages + part.messages, sizes=self.sizes + part.sizes, size=self.size + part.size
        )

    def without(self, spans: list[Span]) -> "Measured":
        """Without the messages in these spans."""
        if not spans:
            return self
        kept = kept_indexes(len(self.messages), spans)
        sizes = tuple(compress(self.sizes, kept))
        return Measured(messages=tuple(compress(self.messages, kept)), sizes=sizes, size=sum(sizes))

    def inserted(self, index: int, message: Message, size: int) -> "Measured":
        """With one more message of that size."""
        messages = (*self.messages[:index], message, *self.messages[index:])
        return Measured(
            messages=messages, sizes=(*self.sizes[:index], size, *self.sizes[index:]), size=self.size + size
        )
