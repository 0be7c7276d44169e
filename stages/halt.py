"""Halt: every reason why a run ends without reaching its goal, each with its full context."""

from typing import Literal

from msgspec import Struct

from stages.effect import Fault

Spent = Literal["calls", "tool calls", "tokens", "cost", "seconds"]


class BadReplies(Struct, frozen=True, kw_only=True, tag="bad_replies"):
    """The model kept answering without a usable call. As an exception: `forge.errors.ToolCallError`.

    `cut`: the last reply ended at its token limit.
    """

    attempts: int
    problem: str
    raw: str
    cut: bool = False


class ToolsFailing(Struct, frozen=True, kw_only=True, tag="tools_failing"):
    """Tools kept failing, or kept getting wrong arguments. As an exception: `forge.errors.ToolExecutionError`.

    `call_id` is the last call, if its tool ran and raised `error`; empty if its arguments were wrong. `cut`: the last
    reply ended at its token limit.
    """

    tool: str
    attempts: int
    error: str
    cut: bool = False
    call_id: str = ""


class StepsSkipped(Struct, frozen=True, kw_only=True, tag="steps_skipped"):
    """The model kept calling the terminal tool before its steps.

    As an exception: `forge.errors.StepEnforcementError`.
    """

    tool: str
    attempts: int
    pending: tuple[str, ...]


class PrerequisitesSkipped(Struct, frozen=True, kw_only=True, tag="prerequisites_skipped"):
    """The model kept calling a tool before its prerequisites. As an exception: `forge.errors.PrerequisiteError`."""

    tool: str
    attempts: int
    missing: tuple[str, ...]


class BudgetSpent(Struct, frozen=True, kw_only=True, tag="budget_spent"):
    """The run's budget is used up. As an exception, for `what` = calls: `forge.errors.MaxIterationsError`."""

    what: Spent
    turns: int
    completed: tuple[str, ...]
    pending: tuple[str, ...]


class DeadEnd(Struct, frozen=True, kw_only=True, tag="dead_end"):
    """The order rules leave no tool that may be called now."""

    completed: tuple[str, ...]
    pending: tuple[str, ...]


class CannotFit(Struct, frozen=True, kw_only=True, tag="cannot_fit"):
    """The history does not fit even after compaction. As an exception: `forge.errors.ContextBudgetExceeded`.

    `tokens` and `budget` are in tokens.
    """

    tokens: int
    budget: int


class BackendFailed(Struct, frozen=True, kw_only=True, tag="backend_failed"):
    """The model's server gave no usable answer. As an exception: `forge.errors.BackendError`."""

    fault: Fault
    attempts: int


class OutcomeUnknown(Struct, frozen=True, kw_only=True, tag="outcome_unknown"):
    """The run cannot continue without a tool that has a call whose outcome is unknown, for the reason `why`.

    Only a person can decide: a model would just repeat the call. `reason` says why no person did.
    """

    tool: str
    arguments: str
    call_id: str = ""
    why: str = ""
    reason: str = ""


class ApprovalNeeded(Struct, frozen=True, kw_only=True, tag="approval_needed"):
    """The call needs a person's approval, and there is nobody to ask."""

    tool: str
    arguments: str
    reason: str


class Unsure(Struct, frozen=True, kw_only=True, tag="unsure"):
    """The model was not sure enough of its call, and the workflow stops in that case.

    `confidence` is from 0 to 1, or None if unknown; `below` is the workflow's threshold. As an
    exception: `forge.errors.UnsureError`.
    """

    tool: str
    arguments: str
    confidence: float | None
    below: float


class Stopped(Struct, frozen=True, kw_only=True, tag="stopped"):
    """A rule of the workflow's own, such as a guard or a stage, ended the run. Forge itself never returns it.

    `reason` is shown to people. As an exception: `forge.errors.StoppedError`.
    """

    reason: str


class JournalFailed(Struct, frozen=True, kw_only=True, tag="journal_failed"):
    """The run's journal can no longer be written: the disk or the journal is full, or another program changed the file.

    `problem` says which.
    """

    problem: str


class Cancelled(Struct, frozen=True, kw_only=True, tag="cancelled"):
    """The user cancelled the run. As an exception: `forge.errors.WorkflowCancelledError`."""

    turns: int
    completed: tuple[str, ...]


Halt = (
    BadReplies
    | ToolsFailing
    | StepsSkipped
    | PrerequisitesSkipped
    | BudgetSpent
    | DeadEnd
    | CannotFit
    | BackendFailed
    | OutcomeUnknown
    | ApprovalNeeded
    | Unsure
    | Stopped
    | JournalFailed
    | Cancelled
)
