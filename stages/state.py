"""State: all of a run, as one value.

The rules of the loop:

 1. A run is a State and a pipeline of stages. Nothing else decides what happens next.
 2. The phase says where in the turn the run is. A stage acts in its own phases and hands on every other
    state untouched.
 3. One application of the pipeline ends in `Awaiting` (the world must do something), `Ready` (the turn is
    over, the next begins), `Done` (a typed outcome), or a Failure with a typed Halt.
 4. Only the driver leaves `Awaiting`: it performs the effect and delivers the outcome.
 5. `history` is what was said; compaction may reshape it. `ledger` is what is enforced; nothing reshapes it.
 6. Every model call is paid for out of the ledger's budget before it is sent, and budgets only shrink: a
    run ends.
 7. The history is always valid for a server: each call is answered, right after the message that made it.
 8. A mistake of the model becomes a corrective message and a count. One correct call, or one clean batch,
    sets the counts back.
"""

from typing import Self

from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.compaction.budget import ContextBudget
from stages.effect import Ask, CallResult, Effect, HandOff, NeedsInput, Refused, Reply, Request, Usage
from stages.message import Assistant, History, Message, ToolCall, size
from stages.tokens import START, Report, length

SCHEMA_VERSION = 1
"""Of the State's JSON form; a reader refuses another."""


class Price(Struct, frozen=True, kw_only=True):
    """What a million tokens cost, in any one currency; `cached`: those that the server kept, None: as the rest."""

    prompt: float = 0.0
    completion: float = 0.0
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """The cost of one reply."""
        if self == FREE:
            return 0.0
        kept = min(usage.cached, usage.prompt)
        cached = self.prompt if self.cached is None else self.cached
        return ((usage.prompt - kept) * self.prompt + kept * cached + usage.completion * self.completion) / 1e6


FREE = Price()


class Budget(Struct, frozen=True, kw_only=True):
    """What the run may still spend (D2); it only shrinks. None: no limit.

    Model calls, tool calls, tokens of prompts and replies, seconds, and `cost`, counted by `price`.
    """

    calls: int = 10
    tool_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    price: Price = FREE


class Success(Struct, frozen=True, kw_only=True):
    """A call that succeeded: what steps and prerequisites are judged by.

    `answer` is the digest of what the model was told of it, `turn` the model call that made it.
    """

    name: str
    arguments: str
    answer: str = ""
    turn: int = 0


class Attempt(Struct, frozen=True, kw_only=True):
    """A call that brought nothing new. `answer` is the digest of what it was answered; empty: refused, or it raised."""

    name: str
    arguments: str
    answer: str = ""
    turn: int = 0


class Compaction(Struct, frozen=True, kw_only=True):
    """One compaction of the history. Seed: `CompactEvent`. `phase` is how far the compactor had to go."""

    turn: int
    phase: int
    tokens_before: int
    tokens_after: int
    budget_tokens: int
    messages_before: int
    messages_after: int


class Cleared(Struct, frozen=True, kw_only=True):
    """A tool's result as it was before compaction cut it, and the call that it answered."""

    call_id: str
    name: str
    arguments: str
    text: str


class Ledger(Struct, frozen=True, kw_only=True):
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
    """The last model call that brought something new (`stages.progress`)."""
    attempts: tuple[Attempt, ...] = ()
    """The calls that were in vain, over the whole run."""
    seen: bytes = b""
    """The digests of the answers that the model was given since the last compaction, 8 bytes each."""
    prompt_size: int = 0
    """Characters of the last prompt, by `message.size`."""
    fallback: str = ""
    """Why the tools stand in the prompt where they should be in the request: what the server refused them with."""
    model: str = ""
    """The model that the rate and the report are of."""
    tokens_per_character: float = START
    report: Report = Report()
    """What the server said of the last prompt; the rate is of what came since, and learns from each reply (D17)."""
    tokens_used: int = 0
    cost: float = 0.0
    """Spent on model calls so far, by the budget's price."""
    context_tokens: int = 0
    """What the prompt may take, as `compact` was told; 0: nobody said."""
    summary_turn: int = -1
    """The last model call that was for a summary; -1: none was."""
    summary_failures: tuple[str, ...] = ()
    """Why the last summaries in a row could not be used."""
    context_warned: float = 0.0
    """The highest context threshold that the prompt is over, and that the model was warned of."""
    compactions: tuple[Compaction, ...] = ()
    in_doubt: tuple[str, ...] = ()
    """Digests of calls that were begun and may have taken effect: nobody makes them again unasked (D9)."""


class Sent(Struct, frozen=True, kw_only=True):
    """The last request. The next one extends it, so that a turn costs what it adds, not what came before.

    `mode` and `wire` say how it was written, `view` what it shows, `sizes` its messages by
    `message.size`, `size` their sum.
    `length` and `last` are the length of the history that it was made from, and that history's last message.
    """

    mode: str = ""
    wire: str = ""
    view: History = ()
    size: int = 0
    sizes: tuple[int, ...] = ()
    request: Request = Request()
    length: int = 0
    last: Message | None = None
    offered: tuple[str, ...] = ()
    """The tools of which the reply has to call one, where the ladder is beyond its beginning; empty: it is not."""


class SummaryOrder(Struct, frozen=True, kw_only=True):
    """What the model is asked for instead of its next turn: a summary, the last tier of compaction (D21).

    `text` asks for it. It replaces what may be cut among the first `messages` of the history, if it has at
    least `shortest` characters and is shorter. `budget` is what the history has to fit.
    """

    text: str
    messages: int
    shortest: int
    budget: ContextBudget


class Ready(Struct, frozen=True, kw_only=True, tag="ready"):
    """A turn begins; with `summary`, that is asked for first.

    `sizes` are those of the messages that no request has shown yet, where they were measured already.
    """

    summary: SummaryOrder | None = None
    sizes: tuple[int, ...] = ()


class Folded(Struct, frozen=True, kw_only=True, tag="folded"):
    """The view is chosen: what the model will be shown. `sizes`: see Ready; empty where the view is not the history."""

    view: History
    summary: SummaryOrder | None = None
    sizes: tuple[int, ...] = ()


class Prepared(Struct, frozen=True, kw_only=True, tag="prepared"):
    """The request is written, ready for the wire."""

    request: Request
    summary: SummaryOrder | None = None


class Batch(Struct, frozen=True, kw_only=True):
    """Calls that are being executed, and what came back so far. `approved`: ids that a person said yes to.

    `notice`: what the model is told after the results of a call that its reply was cut off in.
    """

    calls: tuple[ToolCall, ...] = ()
    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    results: tuple[CallResult, ...] = ()
    approved: tuple[str, ...] = ()
    notice: str = ""


class Awaiting(Struct, frozen=True, kw_only=True, tag="awaiting"):
    """The world must do something. `batch` is what an `Execute` or `Ask` belongs to, `summary` what a `Send` is for.

    Without `summary`, a `Send` is for the run's next turn.
    """

    effect: Effect
    batch: Batch = Batch()
    summary: SummaryOrder | None = None


class Answered(Struct, frozen=True, kw_only=True, tag="answered"):
    """The model replied."""

    reply: Reply


class Vetted(Struct, frozen=True, kw_only=True, tag="vetted"):
    """Calls whose names and arguments are right; `text` and `reasoning` came with them. `notice`: see Batch.

    `refused` are the answers to those of the calls that must not run.
    """

    calls: tuple[ToolCall, ...]
    text: str = ""
    reasoning: str = ""
    sealed: str = ""
    notice: str = ""
    refused: tuple[Refused, ...] = ()


class Edited(Struct, frozen=True, kw_only=True, tag="edited"):
    """A person approved the call of `ask` with arguments of their own; `fit`: they fit the tool's schema."""

    batch: Batch
    ask: Ask
    arguments: str
    fit: bool = False


class Executed(Struct, frozen=True, kw_only=True, tag="executed"):
    """Part of the batch, or all of it, has come back."""

    batch: Batch


class Completed(Struct, frozen=True, kw_only=True, tag="completed"):
    """A terminal tool succeeded; `value` is what it returned, as JSON."""

    tool: str
    value: Raw


class Said(Struct, frozen=True, kw_only=True, tag="said"):
    """The model answered in plain text, and text was welcome."""

    text: str


Ending = Completed | Said | NeedsInput | HandOff


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    """The run reached its goal."""

    outcome: Ending


Phase = Ready | Folded | Prepared | Awaiting | Answered | Vetted | Edited | Executed | Done


class State(Struct, frozen=True, kw_only=True):
    """All of a run."""

    history: History
    ledger: Ledger = Ledger()
    phase: Phase = Ready()
    sent: Sent = Sent()
    cleared: tuple[Cleared, ...] = ()
    """What compaction cut, where it can be asked back (`stages.recall`)."""
    run: str = ""
    """What tells this run from every other, for idempotency keys; never shown to a model. Empty: nobody said."""
    version: int = SCHEMA_VERSION

    def to(self, phase: Phase) -> Self:
        """The same run in another phase."""
        return replace(self, phase=phase)

    def measure(self, *, reasoning: bool = False) -> int:
        """Characters of the prompt that the history makes: what the last request showed, and what came since (D17)."""
        return self.measured(reasoning=reasoning)[0]

    def measured(self, *, reasoning: bool = False) -> tuple[int, tuple[int, ...]]:
        """The same, and of these, those of each message that no request has shown yet.

        `reasoning`: what was thought since is going to be shown too. Takes no longer for a longer history.
        """
        known = self._known()
        since = _sizes(self.history[known:], reasoning=reasoning)
        return (self.sent.size if known else 0) + sum(since), since

    def sizes(self, *, reasoning: bool = False) -> tuple[int, ...] | None:
        """What each message of the history takes; None where the last request showed another history than that."""
        known = self._known()
        if len(self.sent.sizes) != known:
            return None
        return self.sent.sizes + _sizes(self.history[known:], reasoning=reasoning)

    def _known(self) -> int:
        """How many messages at the beginning of the history the last request was made from; 0: another history."""
        known, history = self.sent.length, self.history
        return known if 0 < known <= len(history) and history[known - 1] is self.sent.last else 0

    def reshape(self, history: History) -> Self:
        """The same run with another history than the one that it had and messages after it: measured anew."""
        return replace(self, history=history, sent=replace(self.sent, length=0))

    def say(self, *messages: Message) -> Self:
        """The same run with these messages at the end of its history."""
        return replace(self, history=self.history + messages)

    def note(self, **changes: object) -> Self:
        """The same run with these fields of its ledger changed."""
        return replace(self, ledger=replace(self.ledger, **changes))


def _sizes(messages: History, *, reasoning: bool) -> tuple[int, ...]:
    if not reasoning:
        return tuple(map(size, messages))
    return tuple(size(m) + (length(m.reasoning) if isinstance(m, Assistant) else 0) for m in messages)
