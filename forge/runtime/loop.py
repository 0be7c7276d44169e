"""The loop: apply the pipeline, perform the effect that it asks for, deliver the outcome, again.

`drive` is all of it. It knows neither a model nor a tool: what it is driven with decides.
"""

import asyncio

from returns.result import Result, Success

from forge.interpreters import Interpreter
from forge.outcome import Finished, Halted
from forge.runtime.advancing import advanced
from forge.runtime.log import logging_turns
from forge.runtime.observers import Observer, halted, tell
from forge.runtime.options import checked_options
from forge.runtime.performing import Keep, cancelled, is_set, performed
from stages.deliver import interrupt
from stages.execution import unanswered_calls
from stages.pipeline import Stage
from stages.state import Awaiting, Done, Executed, State


@checked_options
async def drive(
    turn: Stage,
    state: State,
    interpret: Interpreter,
    observer: Observer | None = None,
    cancel: asyncio.Event | None = None,
    *,
    keep: Keep | None = None,
) -> Result[Finished, Halted]:
    """Run from this state to a typed end. Setting `cancel` ends the run at once, with every call answered.

    `keep` is given each state that awaits an effect, before the effect is performed.
    """
    watched = observer is not None or logging_turns()
    while True:
        if is_set(cancel) and not _all_back(state):
            return halted(cancelled(interrupt(state)), observer)
        moved = advanced(turn, state)
        if not isinstance(moved, Success):
            return halted(Halted(halt=moved.failure(), state=state), observer)
        before, state = state, moved.unwrap()
        if watched:
            tell(observer, before, state)
        match state.phase:
            case Done(outcome=outcome):
                return Success(Finished(outcome=outcome, state=state))
            case Awaiting(effect=effect):
                arrived = await performed(effect, state, interpret, cancel, keep)
                if not isinstance(arrived, Success):
                    return halted(arrived.failure(), observer)
                before, state = state, arrived.unwrap()
                if watched:
                    tell(observer, before, state)
            case _:
                pass  # the turn is over, the next begins


def _all_back(state: State) -> bool:
    """Whether every call of a batch has come back: what they did is written down first, it may have ended the run."""
    return isinstance(state.phase, Executed) and not unanswered_calls(state.phase.batch)
