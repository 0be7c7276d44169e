"""The context budget: how much of the model's context a prompt may take, and what of it a history takes."""

from collections.abc import Iterable
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from stages.message import Assistant, History, Message, size
from stages.options import Count, Fraction, Options
from stages.tokens import STARTING_RATE, Report, characters_of, length, tokens_of


class Meter(Struct, frozen=True, kw_only=True):
    """Measurements of the prompt's size, updated in each turn.

    `overhead` is the size of everything in the prompt except the history (tools, instructions), in characters. `report`
    is the server's count for the last prompt, `tokens_per_character` the rate for the difference to it. `sizes` are
    the sizes of the history's messages, if known.
    """

    overhead: int = 0
    tokens_per_character: float = STARTING_RATE
    report: Report = Report()
    sizes: tuple[int, ...] | None = None


_UNMETERED = Meter()
"""No measurements yet."""


class ContextBudget(Options, frozen=True, kw_only=True):
    """How much of the model's context the prompt may take, and when and how far compaction shortens it.

    `tokens` is the maximum for the prompt, `threshold` the fraction of it at which compaction begins. Compaction then
    goes down to the fraction `low` of what is not permanently taken, but never above the threshold: so it is rare, and
    the prompt's beginning stays the same in between. `reasoning`: earlier reasoning is shown again (`fold`), and so
    takes room. `recall`: the model can read cut results again (`stages.view.recall`), so the place of each says how.
    `record`: cut results are kept in the state even without recall.
    These options are checked once, when they are set. `meter` has the measurements (`metered`).
    """

    tokens: Count
    threshold: Fraction = 0.75
    low: Fraction = 0.25
    reasoning: bool = False
    recall: bool = False
    record: bool = False
    meter: Meter = _UNMETERED

    def __post_init__(self) -> None:
        """Check the options, unless this is a metered copy of a budget that was checked."""
        if self.meter is _UNMETERED:
            super().__post_init__()

    def metered(self, rate: float, report: Report, sizes: tuple[int, ...] | None = None) -> Self:
        """The budget with the current rate and report, and the sizes of the history's messages, if known."""
        meter = Meter(overhead=self.meter.overhead, tokens_per_character=rate, report=report, sizes=sizes)
        return replace(self, meter=meter)

    @property
    def trigger(self) -> int:
        """Tokens of the prompt at which compaction begins."""
        return int(self.tokens * self.threshold)

    def target(self, opening: int = 0) -> int:
        """Tokens of the prompt that compaction aims at.

        `opening` is the size, in characters, of the history's beginning that is never cut. `low` applies to the context
        without it and without the overhead: a target below what stays anyway would cut everything else.
        """
        fixed = int((self.meter.overhead + opening) * self.meter.tokens_per_character)
        return min(self.trigger, fixed + int(max(0, self.tokens - fixed) * self.low))

    def tokens_of(self, characters: int) -> int:
        """Tokens of the whole prompt if the history has so many characters, rounded up."""
        meter = self.meter
        return tokens_of(meter.overhead + characters, meter.tokens_per_character, meter.report)

    def sizes(self, history: History) -> tuple[int, ...]:
        """The size of each message in the prompt: the meter's, else counted.

        The meter's sizes are ignored for a history of another length: a compactor may pass its budget on, together with
        a history that it has shortened.
        """
        known = self.meter.sizes
        return known if known is not None and len(known) == len(history) else sizes(history, reasoning=self.reasoning)

    def count(self, messages: Iterable[Message]) -> int:
        """Size of these messages in the prompt, in characters."""
        return sum(sizes(messages, reasoning=self.reasoning))

    def room(self, tokens: int) -> int:
        """Maximum size of the history, in characters, for a prompt of so many tokens."""
        return characters_of(tokens, self.meter.tokens_per_character, self.meter.report) - self.meter.overhead

    def excess(self, characters: int, tokens: int) -> int:
        """By how many characters a history of this size exceeds a prompt of so many tokens; 0 if it fits."""
        return 0 if self.tokens_of(characters) <= tokens else characters - self.room(tokens)


def sizes(messages: Iterable[Message], *, reasoning: bool) -> tuple[int, ...]:
    """The size of each message in a prompt, in characters as `tokens.length` counts them."""
    if not reasoning:
        return tuple(map(size, messages))
    return tuple(size(m) + (length(m.reasoning) if isinstance(m, Assistant) else 0) for m in messages)


def estimate(history: History, budget: ContextBudget) -> int:
    """Tokens of the whole prompt with this history."""
    return budget.tokens_of(budget.count(history))
