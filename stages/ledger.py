"""The ledger: what is enforced over a run, whatever the model remembers: budget, successes, mistakes."""

from typing import TYPE_CHECKING, Literal, assert_never

from msgspec import Struct

from stages.message import ToolCall
from stages.options.option_checks import Options
from stages.tokens import STARTING_RATE, Report

if TYPE_CHECKING:
    from stages.effect import Usage  # which holds a Budget itself


class Price(Options, frozen=True, kw_only=True):
    """Prices of a million tokens, in any one currency.

    `cached`: of prompt tokens that the server had in its cache; None: same as the rest.
    """

    prompt: float = 0.0
    completion: float = 0.0
    cached: float | None = None

    def of(self, usage: "Usage") -> float:
        """The cost of one reply."""
        if self == _FREE:
            return 0.0
        kept = min(usage.cached, usage.prompt)
        cached = self.prompt if self.cached is None else self.cached
        return ((usage.prompt - kept) * self.prompt + kept * cached + usage.completion * self.completion) / 1e6


_FREE = Price()


class Budget(Options, frozen=True, kw_only=True):
    """What the run may still spend; it only shrinks. None: no limit.

    Model calls, tool calls, tokens of prompts and replies, seconds, and `cost`, counted by `price`.
    """

    calls: int = 10
    tool_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    price: Price = _FREE


class Listed(Struct, frozen=True, kw_only=True, gc=False):
    """Values that a tool has listed, and the tool that has to be called with each of them."""

    tool: str
    values: tuple[str, ...]


class Success(Struct, frozen=True, kw_only=True, gc=False):
    """A call that succeeded: steps and prerequisites are judged by these.

    `answer` is the digest of what the model was told of it, `turn` the model call that made it. `listed` are
    the values with which other tools have to be called. `passed`: a rule of order says when an answer of the tool
    counts (`Use.counts_if`), and this one does.
    """

    name: str
    arguments: str
    answer: str = ""
    turn: int = 0
    listed: tuple[Listed, ...] = ()
    passed: bool = False


class Attempt(Struct, frozen=True, kw_only=True, gc=False):
    """A call that brought nothing new. `answer` is the digest of its answer; empty: it was refused, or it raised."""

    name: str
    arguments: str
    answer: str = ""
    turn: int = 0


class Compaction(Struct, frozen=True, kw_only=True, gc=False):
    """One compaction of the history. `phase` is how far the compactor had to go."""

    turn: int
    phase: int
    tokens_before: int
    tokens_after: int
    budget_tokens: int
    messages_before: int
    messages_after: int


class Ledger(Struct, frozen=True, kw_only=True, gc=False):
    """What is enforced, whatever the model remembers."""

    budget: Budget = Budget()
    turn: int = 0
    """Model calls made so far."""
    ids: int = 0
    """Call ids given out so far."""
    successes: tuple[Success, ...] = ()
    retries: int = 0
    tool_errors: int = 0
    premature: int = 0
    prerequisite_violations: int = 0
    repetitions: int = 0
    """Batches refused because they repeat what was answered, over the whole run."""
    refusals: int = 0
    """Batches refused by guards that count nowhere else, over the whole run."""
    progress: int = 0
    """The last model call that brought something new (`stages.policy.progress`)."""
    attempts: tuple[Attempt, ...] = ()
    """The calls that brought nothing new, over the whole run."""
    seen: bytes = b""
    """The digests of the calls that succeeded since the last compaction, and of their answers, 8 bytes each."""
    prompt_size: int = 0
    """Characters of the last prompt, by `message.size`."""
    fallback: str = ""
    """Why the tools are in the prompt instead of the request: what the server refused them with; empty: they are not.
    """
    model: str = ""
    """The model that the rate and the report were measured with."""
    tokens_per_character: float = STARTING_RATE
    report: Report = Report()
    """The server's token count of the last prompt; the rate estimates what came since, and learns from each reply."""
    tokens_used: int = 0
    cost: float = 0.0
    """Spent on model calls so far, by the budget's price."""
    context_tokens: int = 0
    """Maximum tokens of the prompt, as `compact` was told; 0: not known."""
    summary_turn: int = -1
    """The last model call that asked for a summary; -1: there was none."""
    summary_failures: tuple[str, ...] = ()
    """Why the last summaries in a row could not be used."""
    context_warned: float = 0.0
    """The highest context threshold that the prompt has crossed and the model was warned of."""
    compactions: tuple[Compaction, ...] = ()
    in_doubt: tuple[ToolCall, ...] = ()
    """Calls whose outcome is unknown: until somebody decides, their tools are not used."""
    rejected: tuple[str, ...] = ()
    """Digests of calls that a person rejected: nobody is asked about the same call again."""
    unsure_calls: int = 0
    """Model calls spent on decisions that the model was not sure of."""


Counter = Literal["premature", "prerequisite_violations", "retries", "tool_errors", "repetitions", "refusals"]
"""The counts of mistakes. `repetitions` and `refusals` have no maximum."""


def mistake_count(ledger: Ledger, counter: Counter) -> int:
    """How many mistakes were counted there."""
    match counter:
        case "premature":
            return ledger.premature
        case "prerequisite_violations":
            return ledger.prerequisite_violations
        case "retries":
            return ledger.retries
        case "tool_errors":
            return ledger.tool_errors
        case "repetitions":
            return ledger.repetitions
        case "refusals":
            return ledger.refusals
        case _:
            assert_never(counter)
