"""Fallback: whether another model may go on with a run that this one could not finish."""

from collections.abc import Callable

from stages.halt import BackendFailed, BadReplies, CannotFit, Halt, PrerequisitesSkipped, StepsSkipped, ToolsFailing

FallBackOn = Callable[[Halt], bool]
"""A pure function of the reason why a run halted: whether the next model is to go on with it."""


def another_model_may_help(halt: Halt) -> bool:
    """Where the server failed, where the model's replies were refused to the last, where its context is too small.

    Not for a budget that is spent, a person who is needed or has cancelled, or rules that leave nothing to do: those
    are the same for every model.
    """
    return isinstance(halt, BackendFailed | BadReplies | ToolsFailing | StepsSkipped | PrerequisitesSkipped | CannotFit)
