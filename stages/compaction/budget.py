"""What a compactor is given and gives back: a budget in tokens, and a shorter history."""

from collections.abc import Callable

from msgspec import Struct

from stages.halt import CannotFit
from stages.message import Assistant, History, size


class ContextBudget(Struct, frozen=True, kw_only=True):
    """How much of the model's context the history may take.

    `tokens` is the context for the prompt; `threshold` the fraction of it at which compaction begins;
    `overhead` the characters that every prompt has beside the history (tools, instructions); `reasoning`
    whether earlier reasoning is shown again (`fold`), and so takes room; `recall` whether what is cut can be asked
    back (`stages.recall`), so that the place where it was should say so.
    """

    tokens: int
    threshold: float = 0.75
    overhead: int = 0
    tokens_per_character: float = 0.25
    reasoning: bool = False
    recall: bool = False

    @property
    def trigger(self) -> int:
        """Tokens from which on there is something to do."""
        return int(self.tokens * self.threshold)

    def tokens_of(self, characters: int) -> int:
        """Tokens of a prompt whose history has so many characters, rounded up: everything that is sent counts (D17)."""
        return int((self.overhead + characters) * self.tokens_per_character) + 1


def estimate(history: History, budget: ContextBudget) -> int:
    """Tokens of the whole prompt."""
    characters = sum(map(size, history))
    if budget.reasoning:
        characters += sum(len(m.reasoning) for m in history if isinstance(m, Assistant))
    return budget.tokens_of(characters)


class Compacted(Struct, frozen=True, kw_only=True):
    """A history that fits. `phase` is how far the compactor had to go; 0: nothing was cut."""

    history: History
    phase: int


CompactionResult = Compacted | CannotFit

Compactor = Callable[[History, ContextBudget], CompactionResult]
"""Pure, and obeys the laws of D18: see `tests/property/test_compaction_laws.py`."""
