"""One application of a turn for everything in forge that runs one: the loop, replay, the middleware."""

from returns.result import Result

from forge.errors import CallbackError, PipelineError
from stages.halt import Halt
from stages.pipeline import Stage, StuckError, advance
from stages.state import State


def advanced(turn: Stage, state: State) -> Result[State, Halt]:
    """`stages.pipeline.advance`; what was programmed wrongly is a ForgeError with the state to go on from.

    A callback that fails takes the state along as it was before the turn; PipelineError, as the turn left it.
    """
    try:
        return advance(turn, state)
    except CallbackError as error:
        error.state = error.state or state
        raise
    except StuckError as error:
        raise PipelineError(str(error), error.state) from None
