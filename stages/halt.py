"""Halt: every reason for which a run ends without its goal, each with its whole context."""

from typing import Literal

from msgspec import Struct

from stages.effect import Fault

Spent = Literal["calls", "tool calls", "tokens", "cost", "seconds"]


class BadReplies(Struct, frozen=True, kw_only=True, tag="bad_replies"):
    """The model kept answering without a usable call. Seed: `ToolCallError`.

    `cut`: the last reply ended at its limit of tokens.
    """

    attempts: int
    problem: str
    raw: str
    cut: bool = False


class ToolsFailing(Struct, frozen=True, kw_only=True, tag="tools_failing"):
    """Tools kept failing, or were kept being called with arguments that don't fit. Seed: `ToolExecutionError`.

    `cut`: the last reply ended at its limit of tokens.
    """

    tool: str
    attempts: int
    error: str
    cut: bool = False


class StepsSkipped(Struct, frozen=True, kw_only=True, tag="steps_skipped"):
    """The model kept calling the terminal tool before its steps. Seed: `StepEnforcementError`."""

    tool: str
    attempts: int
    pending: tuple[str, ...]


class PrerequisitesSkipped(Struct, frozen=True, kw_only=True, tag="prerequisites_skipped"):
    """The model kept calling a tool before its prerequisites. Seed: `PrerequisiteError`."""

    tool: str
    attempts: int
    missing: tuple[str, ...]


class BudgetSpent(Struct, frozen=True, kw_only=True, tag="budget_spent"):
    """The run's budget is used up. Seed: `MaxIterationsError` (for `what` = calls)."""

    what: Spent
    turns: int
    completed: tuple[str, ...]
    pending: tuple[str, ...]


class DeadEnd(Struct, frozen=True, kw_only=True, tag="dead_end"):
    """The rules of order leave no tool that may be called now."""

    completed: tuple[str, ...]
    pending: tuple[str, ...]


class CannotFit(Struct, frozen=True, kw_only=True, tag="cannot_fit"):
    """Nothing that may be cut makes the history fit its context. Seed: `ContextBudgetExceeded`. Both in tokens."""

    tokens: int
    budget: int


class BackendFailed(Struct, frozen=True, kw_only=True, tag="backend_failed"):
    """The model's server gave no answer that can be used. Seed: `BackendError`, `StreamError`."""

    fault: Fault
    attempts: int


class OutcomeUnknown(Struct, frozen=True, kw_only=True, tag="outcome_unknown"):
    """The run needs a tool of which this call was begun, and nobody says whether it took effect.

    A model cannot decide that; it would only make the call again.
    """

    tool: str
    arguments: str
    call_id: str = ""
    reason: str = ""


class ApprovalNeeded(Struct, frozen=True, kw_only=True, tag="approval_needed"):
    """The call needs a person's yes, and there is nobody to ask."""

    tool: str
    arguments: str
    reason: str


class JournalFailed(Struct, frozen=True, kw_only=True, tag="journal_failed"):
    """The run's journal can no longer be written: the disk or the journal is full, or another program changed the file.

    `problem` says which.
    """

    problem: str


class Cancelled(Struct, frozen=True, kw_only=True, tag="cancelled"):
    """The user cancelled. Seed: `WorkflowCancelledError`."""

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
    | JournalFailed
    | Cancelled
)
