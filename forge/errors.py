"""Exceptions for people who like them, under the names of docs/names.md; `Result` is the other way."""

from typing import assert_never

from stages import halt as halts
from stages.effect import Fault, Outcome
from stages.halt import Halt
from stages.state import State


class ForgeError(Exception):
    """The base of all of them. `state` is the run's last state, None where there was no run."""

    def __init__(self, message: str, state: State | None = None) -> None:
        super().__init__(message)
        self.state = state


class DefinitionError(ForgeError, ValueError):
    """A workflow, or an option, was given wrongly; `problems` lists every mistake, a sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ToolCallError(ForgeError):
    """The model gave no usable call after all retries."""


class ToolExecutionError(ForgeError):
    """Tools kept failing."""


class StepEnforcementError(ForgeError):
    """The model kept skipping required steps."""


class PrerequisiteError(ForgeError):
    """The model kept calling a tool before its prerequisites."""


class BudgetExceededError(ForgeError):
    """The run's token or time budget is spent."""


class MaxIterationsError(BudgetExceededError):
    """The run's model calls are spent."""


class ContextBudgetExceeded(ForgeError):  # noqa: N818 - a name that users know
    """Nothing that may be cut makes the history fit."""


class BackendError(ForgeError):
    """The model's server cannot be reached, or gave no answer that can be used; `fault` says which way."""

    def __init__(self, message: str, state: State | None = None, fault: Fault | None = None) -> None:
        super().__init__(message, state)
        self.fault = fault or Fault(kind="unreachable", detail=message)


class InDoubtError(ForgeError):
    """The run needs a tool of which a call was begun, and nobody says whether it took effect."""


class ApprovalError(ForgeError):
    """A call needs a person's yes, and there is nobody to ask."""


class WatcherError(ForgeError):
    """`on_chunk` raised; the exception is this one's `__cause__`. The request is closed, and the run ends here."""


class CallbackError(ForgeError):
    """A function of the user's own failed, a guard say; `place` says where it was given, `__cause__` what it raised."""

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place


class PipelineError(ForgeError, TypeError):
    """The stages of a run leave it in a phase in which none of them acts."""


class JournalError(ForgeError):
    """A journal cannot be written or read, or the run that is replayed does something that is not in it."""


class UnrecordedError(JournalError):
    """The journal of a run that is going on can no longer be written; the loop ends the run as `JournalFailed`.

    `outcome` is what was not written down; None: the effect was not begun.
    """

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


class WorkerStopped(ForgeError):  # noqa: N818 - what happened is in the name
    """The slot worker was stopped before the job was done."""

    def __init__(self) -> None:
        super().__init__("the slot worker was stopped before this job was done; nobody will run it")


class WorkflowCancelledError(ForgeError):
    """The user cancelled."""


class ToolResolutionError(Exception):
    """Raise this in a tool when the arguments are fine but the data is not there.

    The model is told to try other data. The step is not recorded, the error not counted.
    """


class ToolFailed(Exception):  # noqa: N818 - a name that users know
    """Raise this in a tool when trying again is no use: the model must adapt. Not counted."""


_ADVICE = "Try the mode constrained, or a larger model."
_CUT_OFF = (
    "It was cut off by the limit of tokens of one reply before a call was complete: allow more of them "
    "(--max-tokens; in Python Sampling(max_tokens=…))."
)


def explain(halt: Halt) -> str:
    """The halt as a sentence: what was wrong, and what to do."""
    match halt:
        case halts.BadReplies(attempts=attempts, raw=raw, cut=cut):
            return (
                f"the model gave no usable tool call in {attempts} attempts in a row; the last reply was: "
                f"{raw[:300]!r}. {_CUT_OFF if cut else _ADVICE}"
            )
        case halts.ToolsFailing(tool=tool, attempts=attempts, error=error, cut=cut):
            advice = _CUT_OFF if cut else _ADVICE
            return f"calls failed {attempts} times in a row, the last of them {tool}: {_ended(error)} {advice}"
        case halts.StepsSkipped(tool=tool, attempts=attempts, pending=pending):
            left = ", ".join(pending)
            return f"the model called {tool} {attempts} times before its steps; still pending: {left}. {_ADVICE}"
        case halts.PrerequisitesSkipped(tool=tool, attempts=attempts, missing=missing):
            return (
                f"the model called {tool} {attempts} times without its prerequisites: {', '.join(missing)}. {_ADVICE}"
            )
        case halts.BudgetSpent(what=what, turns=turns, completed=done, pending=pending):
            return (
                f"the run's budget of {what} is spent after {quantity(turns, 'model call')}; "
                f"done: {', '.join(done) or 'nothing'}; pending: {', '.join(pending) or 'only the terminal tool'}"
            )
        case halts.DeadEnd(completed=done, pending=pending):
            return (
                f"the workflow's order leaves no tool that may be called; done: {', '.join(done) or 'nothing'}; "
                f"pending: {', '.join(pending) or 'nothing'}. Relax the rules in order=…"
            )
        case halts.CannotFit(tokens=tokens, budget=budget):
            return (
                f"the prompt takes about {tokens} tokens, and the context has room for {budget} beside a reply; "
                "nothing more may be cut. Start the server with a larger context, lower max_tokens, or shorten "
                "the system prompt, the tools or their results."
            )
        case halts.BackendFailed(fault=fault, attempts=attempts):
            tried = f" (tried {attempts} times)" if attempts > 1 else ""
            trouble = "cannot be reached" if fault.kind == "unreachable" else "gave no usable answer"
            return f"the model's server {trouble}{tried}: {fault.detail}"
        case halts.OutcomeUnknown(tool=tool, arguments=arguments, reason=reason):
            return (
                f"{tool} {arguments} was begun before the run was cut short, and nobody knows whether it took effect"
                f"{f' ({reason})' if reason else ''}. Find out; then resume the run with somebody to ask (ask=…; in a "
                "terminal, forge resume), who says whether it did"
            )
        case halts.ApprovalNeeded(tool=tool, arguments=arguments, reason=reason):
            return (
                f"{tool} {arguments} needs a person's yes, and {reason}. Resume the run with somebody to ask (ask=…; "
                "in a terminal, forge resume)"
            )
        case halts.JournalFailed(problem=problem):
            return f"{problem}. The run was stopped, for what it did next would not be on record"
        case halts.Cancelled(turns=turns):
            return f"cancelled after {quantity(turns, 'model call')}"
        case _:
            assert_never(halt)


def _ended(words: str) -> str:
    """The words as a sentence with its end; an exception without a message is its name alone."""
    said = words.rstrip(": ")
    return said if said.endswith((".", "!", "?")) else f"{said}."


def quantity(number: int, thing: str) -> str:
    """`1 model call`, `2 model calls`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def as_error(halt: Halt, state: State) -> ForgeError:
    """The exception for a halt, with the run's last state."""
    if isinstance(halt, halts.BackendFailed):
        return BackendError(explain(halt), state, halt.fault)
    return _error_class(halt)(explain(halt), state)


def _error_class(halt: Halt) -> type[ForgeError]:
    match halt:
        case halts.BadReplies():
            return ToolCallError
        case halts.ToolsFailing():
            return ToolExecutionError
        case halts.StepsSkipped():
            return StepEnforcementError
        case halts.PrerequisitesSkipped():
            return PrerequisiteError
        case halts.BudgetSpent(what="calls"):
            return MaxIterationsError
        case halts.BudgetSpent():
            return BudgetExceededError
        case halts.DeadEnd():
            return StepEnforcementError
        case halts.CannotFit():
            return ContextBudgetExceeded
        case halts.BackendFailed():
            return BackendError
        case halts.OutcomeUnknown():
            return InDoubtError
        case halts.ApprovalNeeded():
            return ApprovalError
        case halts.JournalFailed():
            return JournalError
        case halts.Cancelled():
            return WorkflowCancelledError
        case _:
            assert_never(halt)
