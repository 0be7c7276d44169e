"""Exceptions, for code that prefers them to `Result`; docs/names.md lists their names."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, assert_never

from stages import halt as halts
from stages._later import later
from stages.effect import Fault, Outcome
from stages.halt import Halt
from stages.options import OptionError, checking
from stages.state import State

RunProblem = Literal["unknown", "reused-id", "wrong-state", "not-asked", "changed", "wrong-cursor"]
"""Why a request about a durable run cannot be fulfilled."""


class ForgeError(Exception):
    """Base class of forge's exceptions. `state` is the last state of the run, or None without a run."""

    def __init__(self, message: str, state: State | None = None) -> None:
        Exception.__init__(self, message)
        self.state = state


class DefinitionError(ForgeError, OptionError):
    """A workflow or an option is invalid; `problems` lists every mistake, one sentence each.

    An invalid group of options, such as `Limits`, raises an OptionError: catch that to catch both.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        ForgeError.__init__(self, "\n".join(problems))
        self.problems = problems


checked_options = checking(DefinitionError)
"""Holds the options of a public function to their annotations: a wrong one is a DefinitionError, in words."""


class ToolCallError(ForgeError):
    """The model made no usable call after all retries."""


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
    """The history does not fit the context, even after compaction."""


class BackendError(ForgeError):
    """The model's server cannot be reached or gave no usable answer; `fault` says what happened."""

    def __init__(self, message: str, state: State | None = None, fault: Fault | None = None) -> None:
        super().__init__(message, state)
        self.fault = fault or Fault(kind="unreachable", detail=message)


class InDoubtError(ForgeError):
    """The run needs a tool that has a call with an unknown outcome, and nobody has settled it."""


class ApprovalError(ForgeError):
    """A call needs a person's approval, and there is nobody to ask."""


class WatcherError(ForgeError):
    """`on_chunk` raised the exception in `__cause__`. The request is closed, and the run ends."""


class CallbackError(ForgeError):
    """A user's function, such as a guard, failed. `place` is the option it was passed in, `__cause__` its exception."""

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place


class PipelineError(ForgeError, TypeError):
    """No stage of the pipeline acts in the phase that the run has reached."""


class JournalError(ForgeError):
    """A journal cannot be written or read, or a replayed run differs from it."""


class UnrecordedError(JournalError):
    """The journal of a running run can no longer be written; the loop ends the run as `JournalFailed`.

    `outcome` is the outcome that could not be recorded, or None if the effect was not started.
    """

    def __init__(self, message: str, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome


class RunError(ForgeError):
    """A request about a durable run cannot be fulfilled; `kind` is the machine-readable reason."""

    def __init__(self, message: str, kind: RunProblem) -> None:
        super().__init__(message)
        self.kind = kind


class StoreError(ForgeError):
    """An agent's memory store cannot be read or written."""


class SessionChangedError(ForgeError):
    """A save was refused because another process or object has saved or deleted the session since it was loaded.

    It was based on the revision `after`, and `found` is the current one; 0 means that there is none.
    """

    def __init__(self, name: str, after: int, found: int) -> None:
        if not found:
            what = f"the session {name!r} was deleted since it was loaded; save it as a new one (Session.branch), or"
        elif not after:
            what = f"there is a session {name!r} already, which this one was not loaded from; choose another name, or"
        else:
            what = f"the session {name!r} was changed elsewhere after it was loaded;"
        super().__init__(f"{what} load it again and go on from there")


class McpError(ForgeError):
    """MCP servers cannot be reached or did not list their tools; the message gives the reason for each."""


class McpToolError(Exception):
    """An error that an MCP server reported for a call, which the model may correct. It is logged in one line."""


class UnsureError(ForgeError):
    """The model was not sure enough of its call, and the workflow stops in that case."""


class StoppedError(ForgeError):
    """A rule of the workflow's own, such as a guard or a stage, ended the run."""


class WorkflowCancelledError(ForgeError):
    """The user cancelled the run."""


class ToolResolutionError(Exception):
    """Raise this in a tool if the arguments are valid but there is no data for them.

    The model is told to try other data. The step does not count as done, and the error is not counted.
    """


class ToolFailed(Exception):  # noqa: N818 - a name that users know
    """Raise this in a tool if a retry is pointless and the model must adapt. The error is not counted."""


class ToolOutcomeUnknown(Exception):  # noqa: N818 - beside ToolFailed
    """Raise this in a tool if the call may have taken effect, for example after a time-out or a lost connection.

    If the tool only reads or is idempotent, this is an error like any other. Any other tool is treated as after a crash
    (docs/tools.md): its calls are blocked until a person decides. The message says why, as in "it was started, but …".
    """


_ADVICE = "Try a larger model, or mode constrained if the run had another mode."
_CUT_OFF = (
    "It reached the maximum number of tokens per reply before a call was complete; allow more "
    "(--max-tokens; in Python Sampling(max_tokens=…))."
)
_FIX_TOOL = (
    "Fix the tool; for errors that the model can handle, raise ToolResolutionError or ToolFailed with a message."
)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def explain(halt: Halt) -> str:
    """The halt as a sentence: what went wrong, and what to do."""
    match halt:
        case halts.BadReplies(attempts=attempts, raw=raw, cut=cut):
            return (
                f"the model gave no usable tool call in {quantity(attempts, 'attempt')}; the last reply was: "
                f"{raw[:300]!r}. {_CUT_OFF if cut else _ADVICE}"
            )
        case halts.ToolsFailing(tool=tool, attempts=attempts, error=error, call_id=str(ran)) if ran:
            often = f" Calls failed {attempts} times in a row." if attempts > 1 else ""
            return f"the tool {tool} raised {_ended(error)}{often} {_FIX_TOOL}"
        case halts.ToolsFailing(tool=tool, attempts=attempts, error=error, cut=cut):
            advice = _CUT_OFF if cut else _ADVICE
            often = f"calls failed {attempts} times in a row, the last of them" if attempts > 1 else "a call failed:"
            return f"{often} {tool}: {_ended(error)} {advice}"
        case halts.StepsSkipped(tool=tool, attempts=attempts, pending=pending):
            left = ", ".join(pending)
            return f"the model called {tool} {_times(attempts)} before its steps; still pending: {left}. {_ADVICE}"
        case halts.PrerequisitesSkipped(tool=tool, attempts=attempts, missing=missing):
            return (
                f"the model called {tool} {_times(attempts)} without its prerequisites: {', '.join(missing)}. {_ADVICE}"
            )
        case halts.BudgetSpent(what=what, turns=turns, completed=done, pending=pending):
            limit = "max_iterations" if what == "calls" else f"max_{what}".replace(" ", "_")
            return (
                f"the run's budget of {what} is spent after {quantity(turns, 'model call')}; "
                f"done: {', '.join(done) or 'nothing'}; pending: {', '.join(pending) or 'only the terminal tool'}. "
                f"To allow more, raise {limit} (limits=Limits(…))"
            )
        case halts.DeadEnd(completed=done, pending=pending):
            return (
                f"the workflow's order rules leave no tool to call; done: {', '.join(done) or 'nothing'}; "
                f"pending: {', '.join(pending) or 'nothing'}. Relax the rules in order=…"
            )
        case halts.CannotFit(tokens=tokens, budget=budget):
            return (
                f"the prompt takes about {tokens} tokens, and the context has room for {budget} besides the reply; "
                "nothing else can be cut. Start the server with a larger context, lower max_tokens, or shorten "
                "the system prompt, the tools or their results."
            )
        case halts.BackendFailed(fault=fault, attempts=attempts):
            tried = f" (tried {attempts} times)" if attempts > 1 else ""
            return f"no reply from the model{tried}: {fault.detail}"
        case halts.OutcomeUnknown(tool=tool, arguments=arguments, why=why, reason=reason):
            return (
                f"{tool} {arguments} was started, and its outcome is unknown{f': {why}' if why else ''}"
                f"{f' ({reason})' if reason else ''}. Find out whether it took effect, then {_WITH_SOMEBODY}"
            )
        case halts.ApprovalNeeded(tool=tool, arguments=arguments, reason=reason):
            return f"{tool} {arguments} needs a person's approval, and {reason}. To decide it, {_WITH_SOMEBODY}"
        case halts.Unsure(tool=tool, arguments=arguments, confidence=confidence, below=below):
            known = "its confidence is unknown" if confidence is None else f"it was {confidence:.0%} sure"
            return (
                f"the model was not sure enough of its call {tool} {arguments}: {known}, and the workflow asks for "
                f"{below:.0%} (unsure=…). It was not run. Decide it yourself, try a larger model, or lower that"
            )
        case halts.Stopped(reason=reason):
            return f"stopped by a rule of the workflow: {reason}"
        case halts.JournalFailed(problem=problem):
            return f"{problem}. The run was stopped because its next steps could not be recorded"
        case halts.Cancelled(turns=turns):
            return f"cancelled in turn {turns}" if turns else "cancelled before the first model call"
        case _:
            assert_never(halt)


_WITH_SOMEBODY = (
    "resume the run with somebody to ask (ask=…; in a terminal, forge resume or forge agent run --resume; a durable "
    "run: retry it, then answer)"
)


def _ended(words: str) -> str:
    """The text as a sentence with a full stop."""
    said = words.rstrip(": ")
    return said if said.endswith((".", "!", "?")) else f"{said}."


def to_install(extra: str) -> str:
    """The command that installs the extra."""
    # No registry has forge-toolcalls; once one does, its name works from any folder.
    return f"run, in the folder of forge's source: pip install '.[{extra}]'"


def later_with(extra: str, package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], object]:
    """Lazy exports as in `later`, whose modules need that extra: ForgeError if it is not installed."""
    exported = later(package, modules)

    def attribute(name: str) -> object:
        try:
            return exported(name)
        except ModuleNotFoundError as error:
            missing = f"{package} needs {error.name}, which is not installed"
            raise ForgeError(f"{missing}; {to_install(extra)}") from None

    return attribute


def quantity(number: float, thing: str) -> str:
    """`1 model call`, `2 model calls`, `0.5 seconds`."""
    return f"{number if isinstance(number, int) else f'{number:g}'} {thing}{'' if number == 1 else 's'}"


def as_error(halt: Halt, state: State) -> ForgeError:
    """The exception for a halt, with the run's last state."""
    said = explain(halt)
    match halt:
        case halts.BadReplies():
            return ToolCallError(said, state)
        case halts.ToolsFailing():
            return ToolExecutionError(said, state)
        case halts.StepsSkipped() | halts.DeadEnd():
            return StepEnforcementError(said, state)
        case halts.PrerequisitesSkipped():
            return PrerequisiteError(said, state)
        case halts.BudgetSpent(what="calls"):
            return MaxIterationsError(said, state)
        case halts.BudgetSpent():
            return BudgetExceededError(said, state)
        case halts.CannotFit():
            return ContextBudgetExceeded(said, state)
        case halts.BackendFailed(fault=fault):
            return BackendError(said, state, fault)
        case halts.OutcomeUnknown():
            return InDoubtError(said, state)
        case halts.ApprovalNeeded():
            return ApprovalError(said, state)
        case halts.Unsure():
            return UnsureError(said, state)
        case halts.Stopped():
            return StoppedError(said, state)
        case halts.JournalFailed():
            return JournalError(said, state)
        case halts.Cancelled():
            return WorkflowCancelledError(said, state)
        case _:
            assert_never(halt)
