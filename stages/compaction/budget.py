"""What a compactor is given and gives back: a budget in tokens, and a shorter history."""

from collections.abc import Callable, Iterable
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from stages.compaction.history import Measured
from stages.halt import CannotFit
from stages.message import Assistant, History, Message, size
from stages.options import Count, Fraction, Options
from stages.tokens import STARTING_RATE, Report, characters_of, length, tokens_of


class Meter(Struct, frozen=True, kw_only=True):
    """What is known of the prompt's size, made anew in each turn.

    `overhead` are the characters that every prompt has beside the history (tools, instructions). `report` is what the
    server said of the last prompt, `tokens_per_character` the rate of what is more or less than that. `sizes` are what
    the messages of the history take, one by one, where that is known.
    """

    overhead: int = 0
    tokens_per_character: float = STARTING_RATE
    report: Report = Report()
    sizes: tuple[int, ...] | None = None

    def tokens_of(self, characters: int) -> int:
        """Tokens of a prompt whose history has so many characters, rounded up: everything that is sent counts."""
        return tokens_of(self.overhead + characters, self.tokens_per_character, self.report)

    def room(self, tokens: int) -> int:
        """Characters that the history may have for the prompt to take no more than so many tokens."""
        return characters_of(tokens, self.tokens_per_character, self.report) - self.overhead


_UNMETERED = Meter()
"""Nothing is known but the history."""


class ContextBudget(Options, frozen=True, kw_only=True):
    """How much of the model's context the history may take.

    `tokens` is the context for the prompt; `threshold` the fraction of it at which compaction begins. `low` is the
    part that it then aims at, of what is not taken for good: so it is rare, and the prompt's beginning stays the same
    in between (it never aims above the threshold). `reasoning` says whether earlier reasoning is shown again
    (`fold`), and so takes room; `recall` whether what is cut can be asked back (`stages.view.recall`), so that the
    place where it was should say so; `record` whether what is cut is kept beside the history even so.
    All these are set once, and checked then. `meter` is what was measured since (`metered`).
    """

    tokens: Count
    threshold: Fraction = 0.75
    low: Fraction = 0.25
    reasoning: bool = False
    recall: bool = False
    record: bool = False
    meter: Meter = _UNMETERED

    def __post_init__(self) -> None:
        """Refuse wrong settings; a budget that is metered anew has those of one that was checked."""
        if self.meter is _UNMETERED:
            super().__post_init__()

    def metered(self, rate: float, report: Report, sizes: tuple[int, ...] | None = None) -> Self:
        """The budget for a prompt now: with this rate and report, and the sizes of the messages where known."""
        meter = Meter(overhead=self.meter.overhead, tokens_per_character=rate, report=report, sizes=sizes)
        return replace(self, meter=meter)

    @property
    def trigger(self) -> int:
        """Tokens from which on there is something to do."""
        return int(self.tokens * self.threshold)

    def target(self, opening: int = 0) -> int:
        """Tokens that compaction aims at, once there is something to do.

        `opening` are the characters at the history's beginning that never go. Of what the context has beside them
        and the overhead, `low` is the part to come down to: a mark below what stays anyway would take all the rest.
        """
        fixed = int((self.meter.overhead + opening) * self.meter.tokens_per_character)
        return min(self.trigger, fixed + int(max(0, self.tokens - fixed) * self.low))

    def tokens_of(self, characters: int) -> int:
        """Tokens of a prompt whose history has so many characters, rounded up: everything that is sent counts."""
        return self.meter.tokens_of(characters)

    def weigh(self, message: Message) -> int:
        """What one message takes in the prompt, in characters as `tokens.length` counts."""
        thought = length(message.reasoning) if self.reasoning and isinstance(message, Assistant) else 0
        return size(message) + thought

    def measured(self, history: History) -> Measured:
        """The history with what each message takes in the prompt: as the caller says, else counted.

        Sizes of another history are not believed: a compactor may hand its budget on with what it has shortened.
        """
        sizes = self.meter.sizes
        if sizes is None or len(sizes) != len(history):
            sizes = tuple(map(self.weigh if self.reasoning else size, history))
        return Measured(messages=history, sizes=sizes, size=sum(sizes))

    def count(self, messages: Iterable[Message]) -> int:
        """What these messages take in the prompt, in characters."""
        return sum(map(self.weigh if self.reasoning else size, messages))

    def room(self, tokens: int) -> int:
        """Characters that the history may have for the prompt to take no more than so many tokens."""
        return self.meter.room(tokens)

    def excess(self, characters: int, tokens: int) -> int:
        """Characters that a history of this size has too many for a prompt of so many tokens; 0 where it fits."""
        return 0 if self.tokens_of(characters) <= tokens else characters - self.room(tokens)


def estimate(history: History, budget: ContextBudget) -> int:
    """Tokens of the whole prompt."""
    return budget.tokens_of(budget.count(history))


class Compacted(Struct, frozen=True, kw_only=True):
    """A history that fits. `phase` is how far the compactor had to go; 0: nothing was cut."""

    history: History
    phase: int


CompactionResult = Compacted | CannotFit

Compactor = Callable[[History, ContextBudget], CompactionResult]
"""Pure, and obeys the laws of compaction: `forge.testing.assert_compactor_laws` checks one of your own."""
