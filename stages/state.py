"""State: a whole run as one value.

The rules of the loop:

 1. A run is a State and a pipeline of stages. Nothing else decides what happens next.
 2. The phase says where in the turn the run is. A stage acts in its own phases and returns every other
    state unchanged.
 3. One application of the pipeline ends in `Awaiting` (an effect must be performed), `Ready` (the turn is
    over, the next begins), `Done` (a typed outcome), or a Failure with a typed Halt.
 4. Only the driver leaves `Awaiting`: it performs the effect and delivers the outcome.
 5. `history` holds the messages, and compaction may shorten it. `ledger` holds the facts that rules rely on, and is
    never shortened.
 6. Every model call is charged to the ledger's budget before it is sent, and budgets only shrink, so every run
    ends.
 7. The history is always valid for a server: each call is answered, right after the message that made it.
 8. A mistake of the model becomes a corrective message and a count. One correct call, or one clean batch,
    resets the counts.

All values are frozen and without cycles, so the garbage collector need not walk them (`gc=False`).
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Generic, Literal, Self, TypeVar, assert_never, get_args

from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.context_budget import ContextBudget, sizes
from stages.effect import (
    Ask,
    Budget,
    CallResult,
    Effect,
    HandOff,
    NeedsInput,
    Refused,
    Reply,
    Request,
    Said,
    Succeeded,
)
from stages.message import Assistant, History, Message, Status, ToolCall, UnknownCall, size
from stages.tokens import STARTING_RATE, Report

# Phases: where a run is in its turn. Each holds the data that the next stage needs.


class SummaryOrder(Struct, frozen=True, kw_only=True, gc=False):
    """A request for a summary in place of the next turn, the last tier of compaction.

    `text` is the request. The summary replaces what may be cut of the first `messages` of the history, if it has at
    least `shortest` characters and is shorter than what it replaces. The history must fit `budget`.
    """

    text: str
    messages: int
    shortest: int
    budget: ContextBudget


MAIN = "main"
"""The default target of a request: the run's own model."""


class Asked(Struct, frozen=True, kw_only=True, gc=False):
    """The request that a reply answers; the reply is judged by it.

    `target` is the name of the model (`Ready.target`), and `mode` how calls were requested. `notes` were at the end of
    the prompt, and `tail` at the end of the request: its tools, or the schema of a reply.
    """

    target: str = MAIN
    mode: str = ""
    notes: History = ()
    tail: Raw = Raw(b"{}")


class Ready(Struct, frozen=True, kw_only=True, gc=False, tag="ready"):
    """A turn begins. If `summary` is set, forge requests that first.

    `target` names the model to ask, among the targets of `serialize` and the backend. A stage selects another model
    with `state.to(replace(phase, target="larger"))`.
    """

    summary: SummaryOrder | None = None
    target: str = MAIN


class Folded(Struct, frozen=True, kw_only=True, gc=False, tag="folded"):
    """The view is chosen: the messages that the model will see.

    `notes` are messages at the end of this prompt only; the next prompt does not contain them.
    """

    view: History
    summary: SummaryOrder | None = None
    notes: History = ()
    target: str = MAIN


class Prepared(Struct, frozen=True, kw_only=True, gc=False, tag="prepared"):
    """The request is written, ready for the wire."""

    request: Request
    summary: SummaryOrder | None = None
    asked: Asked = Asked()


class Listed(Struct, frozen=True, kw_only=True, gc=False):
    """Values that a tool has listed, and the tool that must be called with each of them."""

    tool: str
    values: tuple[str, ...]


class JudgedResult(Struct, frozen=True, kw_only=True, gc=False):
    """The rules of order on the result of a call: the `listed` and `passed` of its `Success`."""

    call_id: str
    listed: tuple[Listed, ...] = ()
    passed: bool = False


class Batch(Struct, frozen=True, kw_only=True, gc=False):
    """The calls being executed, from the message `said`, and their results so far.

    `judged`: the results that the stage `execute` has judged as they came. Code that cuts a run short does not know the
    rules, and records the successes by these.

    `approved`: IDs of calls that a person approved. `answered`: digests of the questions that a person has answered.
    `notice`: a text for the model after the results, if its reply was cut off within a call. `heard`: what the user
    said in the meantime (`effect.Results`).
    """

    said: Assistant = Assistant()
    results: tuple[CallResult, ...] = ()
    judged: tuple[JudgedResult, ...] = ()
    approved: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    notice: str = ""
    heard: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which the model made them."""
        return self.said.calls

    def with_results(self, *more: CallResult) -> Self:
        """The batch with further results."""
        return replace(self, results=self.results + more)


class Awaiting(Struct, frozen=True, kw_only=True, gc=False, tag="awaiting"):
    """An effect must be performed. `batch` is the batch of an `Execute` or `Ask`, `summary` the purpose of a `Send`.

    Without `summary`, a `Send` is for the run's next turn. `asked` is the request that a `Send` makes.
    """

    effect: Effect
    batch: Batch = Batch()
    summary: SummaryOrder | None = None
    asked: Asked = Asked()


class Answered(Struct, frozen=True, kw_only=True, gc=False, tag="answered"):
    """The model replied to what it was `asked`."""

    reply: Reply
    asked: Asked = Asked()


class Vetted(Struct, frozen=True, kw_only=True, gc=False, tag="vetted"):
    """The message `said`, with calls whose names and arguments are valid. `notice`: see Batch.

    `asked` is the request that it answers. `refused` are the answers to calls that must not run. `allowed`: the guards
    have checked the calls and let the others run; `execute` runs only allowed calls.
    """

    said: Assistant
    notice: str = ""
    refused: tuple[Refused, ...] = ()
    allowed: bool = False
    asked: Asked = Asked()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which the model made them."""
        return self.said.calls

    @property
    def batch(self) -> Batch:
        """The batch at the start of execution, with the refused calls already answered."""
        return Batch(said=self.said, results=self.refused, notice=self.notice)


class Edited(Struct, frozen=True, kw_only=True, gc=False, tag="edited"):
    """A person approved the call of `ask` with edited `arguments`; `fit`: they match the tool's schema."""

    batch: Batch
    ask: Ask
    arguments: str
    fit: bool = False


class Executed(Struct, frozen=True, kw_only=True, gc=False, tag="executed"):
    """Some or all calls of the batch have returned.

    `settled`: an earlier call, and the result that a person has found out about it.
    """

    batch: Batch
    settled: tuple[ToolCall, Succeeded] | None = None


class Completed(Struct, frozen=True, kw_only=True, gc=False, tag="completed"):
    """A terminal tool succeeded; `value` is what it returned, as JSON."""

    tool: str
    value: Raw


Ending = Completed | Said | NeedsInput | HandOff


class Done(Struct, frozen=True, kw_only=True, gc=False, tag="done"):
    """The run reached its goal. `batch`: the calls that continue once the user has answered the question of one."""

    outcome: Ending
    batch: Batch = Batch()


Phase = Ready | Folded | Prepared | Awaiting | Answered | Vetted | Edited | Executed | Done


StageName = Literal["compact", "fold", "serialize", "send", "validate", "enforce", "execute"]
"""The name of one of forge's own stages."""


class Acts(Struct, frozen=True, gc=False):
    """The phases in which a stage acts, the main one first, and those of them that it always leaves."""

    phases: tuple[type[Phase], ...]
    leaves: frozenset[type[Phase]]


STAGES: Mapping[StageName, Acts] = {
    "compact": Acts((Ready,), frozenset()),
    "fold": Acts((Ready,), frozenset({Ready})),
    "serialize": Acts((Folded,), frozenset({Folded})),
    "send": Acts((Prepared,), frozenset({Prepared})),
    "validate": Acts((Answered, Edited), frozenset({Answered})),
    "enforce": Acts((Vetted, Edited), frozenset({Edited})),
    "execute": Acts((Executed, Vetted), frozenset({Executed, Vetted})),
}
"""Forge's own stages, in running order."""

LEADS_TO: Mapping[type[Phase], frozenset[type[Phase]]] = {
    Ready: frozenset({Folded}),
    Folded: frozenset({Prepared}),
    Prepared: frozenset({Awaiting}),
    Answered: frozenset({Vetted, Ready, Done}),
    Vetted: frozenset({Awaiting, Executed, Ready}),
    Edited: frozenset({Executed}),
    Executed: frozenset({Awaiting, Ready, Done}),
}
"""The phases that a stage may lead to, by the phase in which it acts."""

ENTRIES: frozenset[type[Phase]] = frozenset({Ready, Answered, Edited, Executed})
"""The phases in which a state enters a turn: at its beginning, and after an outcome."""


def missing_stage(phase: Phase) -> str:
    """Which stage is missing if a pipeline leaves a run in this phase, as a sentence."""
    name = type(phase).__name__
    if isinstance(phase, Vetted) and not phase.allowed:
        return (
            f"the pipeline leaves the run in {name}: no stage asked the guards whether the calls may run. Put "
            "enforce(…) between validate and execute; enforce() without guards allows every call"
        )
    if isinstance(phase, Vetted):
        return f"the pipeline leaves the run in {name}: no stage after enforce runs the calls; put execute(…) there"
    stage = next((name for name, acts in STAGES.items() if type(phase) in acts.leaves), None)
    return f"the pipeline leaves the run in {name}: no stage of it acts there" + (f", as {stage} does" if stage else "")


# The ledger: the facts that rules rely on, independent of what the model still sees: budget, successes, mistakes.


class Success(Struct, frozen=True, kw_only=True, gc=False):
    """A successful call; steps and prerequisites are judged by these.

    `call` and `answer` are digests: of the call, and of the call with its result (`stages.progress`). `turn` is the
    model call that made it.
    `listed` are the values that other tools must be called with. `passed`: an order rule says which results of the tool
    count (`Use.counts_if`), and this one does.
    """

    name: str
    arguments: str
    call: bytes = b""
    answer: bytes = b""
    turn: int = 0
    listed: tuple[Listed, ...] = ()
    passed: bool = False


class Attempt(Struct, frozen=True, kw_only=True, gc=False):
    """A call without progress, with the digests of a `Success`. `answer` is empty if it was refused or raised.

    Which of these ran and failed is in the history: the `status` of its `Tool` message (`stages.message.FAILURES`).
    """

    name: str
    arguments: str
    call: bytes = b""
    answer: bytes = b""
    turn: int = 0


class Compaction(Struct, frozen=True, kw_only=True, gc=False):
    """One compaction of the history. `phase` is the last step that the compactor needed."""

    turn: int
    phase: int
    tokens_before: int
    tokens_after: int
    budget_tokens: int
    messages_before: int
    messages_after: int


class Ledger(Struct, frozen=True, kw_only=True, gc=False):
    """The facts that rules rely on, independent of what the model still sees."""

    budget: Budget = Budget()
    turn: int = 0
    """Model calls made so far."""
    ids: int = 0
    """Call ids given out so far."""
    effects: int = 0
    """Effects completed so far: model calls, groups of tool calls, questions."""
    successes: tuple[Success, ...] = ()
    # Mistakes in a row, each with its limit. `budget.with_budget` sets them to zero for a resumed run.
    retries: int = 0
    tool_errors: int = 0
    premature: int = 0
    prerequisite_violations: int = 0
    repetitions: int = 0
    """Batches refused as repetitions, over the whole run."""
    refusals: int = 0
    """Batches refused by guards without a count of their own, over the whole run."""
    progress: int = 0
    """The last model call that made progress (`stages.progress`)."""
    attempts: tuple[Attempt, ...] = ()
    """The calls without progress, over the whole run."""
    seen: bytes = b""
    """The digests of the calls that succeeded since the last compaction, `call` and `answer` of each."""
    prompt_size: int = 0
    """Characters of the last prompt, by `message.size`."""
    fallback: str = ""
    """The error by which the server refused tools, so that they are in the prompt instead; empty if it did not."""
    model: str = ""
    """The model for which the rate and the report were measured."""
    tokens_per_character: float = STARTING_RATE
    report: Report = Report()
    """The server's token count of the last prompt. The rate estimates later messages, and adapts to each reply."""
    tokens_used: int = 0
    cost: float = 0.0
    """Spent on model calls so far, by the budget's price."""
    context_tokens: int = 0
    """Maximum tokens of the prompt, as passed to `compact`; 0 if unknown."""
    summary_turn: int = -1
    """The last model call that requested a summary; -1 if none did."""
    summary_failures: tuple[str, ...] = ()
    """Why the last consecutive summaries were unusable."""
    compactions: tuple[Compaction, ...] = ()
    in_doubt: tuple[UnknownCall, ...] = ()
    """Calls whose outcome is unknown; their tools are blocked until a person decides."""
    rejected: tuple[str, ...] = ()
    """Digests of rejected calls; forge does not ask about the same call again."""
    asked_to_act: int = -1
    """The model call after whose text forge asked whether something should be done; -1 if it never asked."""
    asked_about: tuple[str, ...] | None = None
    """The tools of calls in the last reply of which the model was asked whether they are meant; empty: of a call that
    cannot be read; None: it was not asked."""


Counter = Literal["premature", "prerequisite_violations", "retries", "tool_errors", "repetitions", "refusals"]
"""The counts of mistakes. `repetitions` and `refusals` have no maximum."""

COUNTERS: tuple[Counter, ...] = get_args(Counter)


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


# Memo: caches. The requests as they were written, and indexes of the history, so that a turn only reads new messages.
#
# They can all be computed from the messages, so they are not saved.


_S = TypeVar("_S")
_T = TypeVar("_T")


class Indexed(Struct, Generic[_T], frozen=True, kw_only=True, gc=False):
    """A value for each item of a tuple that grows at its end, such as the history, so that a turn only reads new items.

    `last` is the last item that was read, by which the tuple is known again, and `key` what the values depend on beside
    the items.
    """

    values: tuple[_T, ...] = ()
    last: object = None
    key: str = ""

    def known(self, items: tuple[object, ...], key: str = "") -> tuple[_T, ...]:
        """The values of those items that were read; none of another tuple, or for another key."""
        known = _known_items(items, len(self.values), self.last) if key == self.key else 0
        return self.values if known else ()

    def extended(self, items: tuple[_S, ...], read: Callable[[_S, _T | None], _T], key: str = "") -> Self:
        """The index of all items: `read` makes the value of a new one, given that of the item before it."""
        known = self.known(items, key)
        if items and len(known) == len(items):
            return self
        values = [*known]
        for item in items[len(known) :]:
            values.append(read(item, values[-1] if values else None))
        return replace(self, values=tuple(values), last=items[-1] if items else None, key=key)


def _known_items(items: tuple[object, ...], length: int, last: object) -> int:
    """`length` if the items begin with as many that ended in `last`, else 0."""
    return length if 0 < length <= len(items) and items[length - 1] is last else 0


class Evidence(Struct, frozen=True, kw_only=True, gc=False):
    """What texts contain: every number, and all words, normalized (`stages.seen`)."""

    numbers: frozenset[Decimal]
    words: str


Spoken = tuple[frozenset[str], frozenset[str]]
"""The tools that were named up to a message, and those whose names stood in a call's arguments (`stages.rules`)."""


SCHEMA_VERSION = 6
"""The version of the State's JSON form (`stages.saved`)."""


class Cleared(Struct, frozen=True, kw_only=True, gc=False):
    """A tool's result as it was before compaction cut it, and the call that it answered."""

    call_id: str
    name: str
    arguments: str
    text: str
    status: Status = "succeeded"


class Held(Struct, frozen=True, kw_only=True, gc=False):
    """A tool that the last request did not offer, and what holds it back (`stages.events.HeldBack`).

    `values`: the tool was offered, but not with all values of its arguments.
    """

    tool: str
    by: str
    values: bool = False


class Prompt(Struct, frozen=True, kw_only=True, gc=False):
    """The last prompt of a target, with which the next one is compared and from which the history's size is measured.

    `view` is the part of the history that it showed, `size` its characters by `message.size`, and `whole` those of the
    whole prompt. `length` is the length of the history it was made from; 0 if the state now has another history.
    `tools` and `first` are digests: of the tools, if they are a field of the request, and of its head and first
    message. `held` is what it did not offer.
    """

    target: str = MAIN
    mode: str = ""
    view: History = ()
    size: int = 0
    whole: int = 0
    length: int = 0
    tools: bytes = b""
    first: bytes = b""
    held: tuple[Held, ...] = ()


class Written(Struct, frozen=True, kw_only=True, gc=False):
    """The last request of a target. The next one extends it, so that a turn only costs what it adds.

    `prompt` is its content, without notes, and `wire` its format.
    """

    prompt: Prompt = Prompt()
    wire: str = ""
    request: Request = Request()


class Memo(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Caches: without them, every turn has the same result.

    `written` are the last requests, one per target; `last` is the last message of the history from which the latest was
    made. The others are indexes, of the history and, in `cut_…`, of what compaction cut.
    """

    written: tuple[Written, ...] = ()
    last: Message | None = None
    naming: Indexed[bool] = Indexed()
    """Whether the message names a tool (`stages.reading.shown`)."""
    cut_naming: Indexed[bool] = Indexed()
    spoken: Indexed[Spoken] = Indexed()
    shown: Indexed[Evidence | None] = Indexed()
    """The values that the message gives the model (`stages.seen`); None if it gives none."""
    cut_shown: Indexed[Evidence | None] = Indexed()


class State(Struct, frozen=True, kw_only=True, gc=False):
    """A whole run."""

    history: History
    ledger: Ledger = Ledger()
    phase: Phase = Ready()
    prompts: tuple[Prompt, ...] = ()
    """The last prompt of each target; the last of all at the end."""
    cleared: tuple[Cleared, ...] = ()
    """What compaction cut and can be recalled (`stages.view.recall`)."""
    kept: tuple[tuple[str, Raw], ...] = ()
    """What features store between turns, each under its own name (`stages.kept`)."""
    run: str = ""
    """The unique id of the run, for idempotency keys; never shown to a model. Empty if none was given."""
    memo: Memo = Memo()
    version: int = SCHEMA_VERSION

    def __repr__(self) -> str:
        """A short summary; `msgspec.json.encode` gives all fields."""
        effect = f"({type(self.phase.effect).__name__})" if isinstance(self.phase, Awaiting) else ""
        done = ", ".join(dict.fromkeys(success.name for success in self.ledger.successes))
        said = "1 message" if len(self.history) == 1 else f"{len(self.history)} messages"
        return f"State({type(self.phase).__name__}{effect}, turn {self.ledger.turn}, {said}, done: {done or 'nothing'})"

    def to(self, phase: Phase) -> Self:
        """The same run in another phase."""
        return replace(self, phase=phase)

    @property
    def asked(self) -> Asked:
        """The request to the model, until its reply is judged."""
        return self.phase.asked if isinstance(self.phase, Prepared | Awaiting | Answered | Vetted) else Asked()

    @property
    def prompt(self) -> Prompt:
        """The last prompt; an empty one before the first."""
        return self.prompts[-1] if self.prompts else Prompt()

    def measure(self, *, reasoning: bool = False) -> int:
        """Characters that the history takes in a prompt: those that the last request showed, and the messages since.

        `reasoning`: the reasoning since then will be shown too. The time does not depend on the length of the history.
        """
        known = self.known()
        return (self.prompt.size if known else 0) + sum(sizes(self.history[known:], reasoning=reasoning))

    def sizes(self, *, reasoning: bool = False) -> tuple[int, ...] | None:
        """Characters of each message of the history; None if the last request showed another history."""
        known = self.known()
        view = self.prompt.view if known else ()
        if len(view) != known:
            return None
        return tuple(map(size, view)) + sizes(self.history[known:], reasoning=reasoning)

    def succeeded(self, tool: str) -> bool:
        """Whether a call of the tool has succeeded in this run, even if compaction has cut it since."""
        return any(success.name == tool for success in self.ledger.successes)

    def known(self) -> int:
        """Number of messages at the start of the history from which the last request was made; 0: another history."""
        length, last = self.prompt.length, self.memo.last
        if last is None:
            return length if length <= len(self.history) else 0
        return _known_items(self.history, length, last)

    def reshape(self, history: History) -> Self:
        """The same run with a history that does not just add messages; it is measured anew."""
        return replace(self, history=history, prompts=tuple(replace(prompt, length=0) for prompt in self.prompts))

    def say(self, *messages: Message) -> Self:
        """The same run with these messages at the end of its history. Raises TypeError for anything else."""
        if strange := [one for one in messages if not isinstance(one, Message)]:
            raise TypeError(f"say() takes messages, such as User(text=…), not {repr(strange[0])[:200]}")
        return replace(self, history=self.history + messages)

    def note(self, **changes: object) -> Self:
        """The same run with these fields of its ledger changed."""
        return replace(self, ledger=replace(self.ledger, **changes))
