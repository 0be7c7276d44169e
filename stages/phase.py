"""Phases: where in its turn a run is; each is a value that holds what the stage to come works on."""

from msgspec import Raw, Struct

from stages.compaction.budget import ContextBudget
from stages.confidence.call_choices import MeasuredCall
from stages.effect import Ask, CallResult, Effect, HandOff, NeedsInput, Refused, Reply, Request, Said
from stages.message import Assistant, History, ToolCall


class SummaryOrder(Struct, frozen=True, kw_only=True, gc=False):
    """What the model is asked for instead of its next turn: a summary, the last tier of compaction.

    `text` asks for it. It replaces what may be cut among the first `messages` of the history, if it has at
    least `shortest` characters and is shorter. `budget` is what the history has to fit. `elsewhere`: the backend's
    model for summaries is asked.
    """

    text: str
    messages: int
    shortest: int
    budget: ContextBudget
    elsewhere: bool = False


class Ready(Struct, frozen=True, kw_only=True, gc=False, tag="ready"):
    """A turn begins; with `summary`, that is asked for first."""

    summary: SummaryOrder | None = None


class Folded(Struct, frozen=True, kw_only=True, gc=False, tag="folded"):
    """The view is chosen: what the model will be shown.

    `notes` stand at the end of this prompt alone: the next one goes on from the view without them.
    """

    view: History
    summary: SummaryOrder | None = None
    notes: History = ()


class Prepared(Struct, frozen=True, kw_only=True, gc=False, tag="prepared"):
    """The request is written, ready for the wire."""

    request: Request
    summary: SummaryOrder | None = None


class Batch(Struct, frozen=True, kw_only=True, gc=False):
    """Calls that are being executed, in what the model `said`, and what came back so far.

    `approved`: ids that a person said yes to. `notice`: what the model is told after the results of a call that its
    reply was cut off in. `heard`: what the user said meanwhile (`effect.Results`).
    """

    said: Assistant = Assistant()
    results: tuple[CallResult, ...] = ()
    approved: tuple[str, ...] = ()
    notice: str = ""
    heard: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which the model made them."""
        return self.said.calls


class Awaiting(Struct, frozen=True, kw_only=True, gc=False, tag="awaiting"):
    """The world must do something. `batch` is what an `Execute` or `Ask` belongs to, `summary` what a `Send` is for.

    Without `summary`, a `Send` is for the run's next turn.
    """

    effect: Effect
    batch: Batch = Batch()
    summary: SummaryOrder | None = None


class Answered(Struct, frozen=True, kw_only=True, gc=False, tag="answered"):
    """The model replied."""

    reply: Reply


class Vetted(Struct, frozen=True, kw_only=True, gc=False, tag="vetted"):
    """What the model `said`, with calls whose names and arguments are right. `notice`: see Batch.

    `refused` are the answers to those of the calls that must not run. `allowed`: the guards were asked, and let the
    others run; `execute` runs no calls that are not allowed. `choices`: of each call, what is known of its choices.
    """

    said: Assistant
    notice: str = ""
    choices: tuple[MeasuredCall | None, ...] = ()
    refused: tuple[Refused, ...] = ()
    allowed: bool = False

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which the model made them."""
        return self.said.calls

    @property
    def batch(self) -> Batch:
        """The calls as they begin to be executed, those that must not run answered."""
        return Batch(said=self.said, results=self.refused, notice=self.notice)


class Edited(Struct, frozen=True, kw_only=True, gc=False, tag="edited"):
    """A person approved the call of `ask` with arguments of their own; `fit`: they fit the tool's schema."""

    batch: Batch
    ask: Ask
    arguments: str
    fit: bool = False


class Executed(Struct, frozen=True, kw_only=True, gc=False, tag="executed"):
    """Part of the batch, or all of it, has come back."""

    batch: Batch


class Completed(Struct, frozen=True, kw_only=True, gc=False, tag="completed"):
    """A terminal tool succeeded; `value` is what it returned, as JSON."""

    tool: str
    value: Raw


Ending = Completed | Said | NeedsInput | HandOff


class Done(Struct, frozen=True, kw_only=True, gc=False, tag="done"):
    """The run reached its goal. `batch`: the calls that go on once the user has answered what one of them asks."""

    outcome: Ending
    batch: Batch = Batch()


Phase = Ready | Folded | Prepared | Awaiting | Answered | Vetted | Edited | Executed | Done


def missing_stage(phase: Phase) -> str:
    """What a pipeline lacks that leaves a run in this phase, as a sentence."""
    name = type(phase).__name__
    if isinstance(phase, Vetted) and not phase.allowed:
        return (
            f"the pipeline leaves the run in {name}: no stage asked the guards whether the calls may run. Put "
            "enforce(…) between validate and execute; enforce() without guards allows every call"
        )
    if isinstance(phase, Vetted):
        return f"the pipeline leaves the run in {name}: no stage after enforce runs the calls; put execute(…) there"
    stage = _LEFT_BY.get(type(phase))
    return f"the pipeline leaves the run in {name}: no stage of it acts there" + (f", as {stage} does" if stage else "")


_LEFT_BY: dict[type[Phase], str] = {
    Ready: "fold",
    Folded: "serialize",
    Prepared: "send",
    Answered: "validate",
    Edited: "enforce",
    Executed: "execute",
}
