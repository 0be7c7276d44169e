"""The loop: apply the pipeline, perform the effect that it asks for, deliver the outcome, again.

`loop` is all of it. It knows neither a model nor a tool: what it is given decides.
"""

import asyncio
import warnings
from collections.abc import Awaitable, Callable

from returns.result import Failure, Result, Success

from forge.errors import ForgeError, UnrecordedError, checked_options
from forge.interpreters import Interpreter
from forge.interpreters.tools import leave
from forge.outcome import Finished, Halted
from forge.runtime.emitter import Emitter
from forge.workflow.turn import advanced
from stages.deliver import deliver, interrupt
from stages.effect import Ask, Effect, Outcome
from stages.halt import Cancelled, JournalFailed
from stages.pipeline import Stage, dead_stages
from stages.rules import completed
from stages.state import Awaiting, Done, Executed, State

# One effect performed for the loop, unless the run is cancelled first, and its outcome delivered.

Keep = Callable[[State], Awaitable[None]]
"""Saves a state. It raises UnrecordedError if it cannot: the run then ends as `JournalFailed`."""

_GRACE = 5.0
"""Seconds that what is cancelled has to end."""


def is_set(cancel: asyncio.Event | None) -> bool:
    """Whether the run is to end."""
    return cancel is not None and cancel.is_set()


def cancelled(state: State) -> Halted:
    """The end of a run that is in that state, as it was cancelled."""
    return Halted(halt=Cancelled(turns=state.ledger.turn, completed=completed(state.ledger)), state=state)


async def performed(
    effect: Effect,
    state: State,
    interpret: Interpreter,
    emitter: Emitter,
    *,
    cancel: asyncio.Event | None,
    keep: Keep | None,
) -> Result[State, Halted]:
    """The state after the effect; or the end of the run: by its outcome, by `cancel`, or for a journal that fails.

    Any other ForgeError on the way carries the run's state, every call answered: what was done is not lost with it. A
    question is still to be asked.
    """
    if is_set(cancel):
        return Failure(cancelled(emitter.cut_short(state, begun=False)))
    try:
        if keep is not None:
            await keep(state)
        outcome = await (interpret(effect) if cancel is None else uncancelled(cancel, interpret(effect)))
    except UnrecordedError as error:
        after = state
        if error.outcome is not None:
            after = deliver(state, error.outcome).value_or(state)
            emitter.moved(state, after, error.outcome)
        cut = emitter.cut_short(after, begun=False)
        return Failure(Halted(halt=JournalFailed(problem=str(error)), state=cut))
    except ForgeError as error:
        error.state = error.state or (state if isinstance(effect, Ask) else emitter.cut_short(state))
        raise
    if outcome is None:
        return Failure(cancelled(emitter.cut_short(state)))
    delivered = deliver(state, outcome)
    emitter.moved(state, delivered.value_or(state), outcome)
    return delivered.alt(lambda halt: Halted(halt=halt, state=state))


async def uncancelled(cancel: asyncio.Event, outcome: Awaitable[Outcome]) -> Outcome | None:
    """The outcome, or None if `cancel` is set before it comes; what was performing it is then cancelled.

    What comes all the same, at the same moment or while it is being stopped, is the outcome: it has happened. What
    does not let itself be stopped is left behind.
    """
    performing = asyncio.ensure_future(outcome)
    asked = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({performing, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        performing.cancel()
        await asyncio.wait({performing, asked}, timeout=_GRACE)
        leave(performing)
    return performing.result() if performing.done() and not performing.cancelled() else None


@checked_options
async def drive(
    turn: Stage,
    state: State,
    interpret: Interpreter,
    *,
    emitter: Emitter | None = None,
    cancel: asyncio.Event | None = None,
    keep: Keep | None = None,
) -> Result[Finished, Halted]:
    """Run a turn that you composed, from this state to a typed end: `loop`, with its arguments checked.

    Warns of stages that would never run where they stand in the turn; a Workflow refuses those.
    """
    # Here, not in `advance`: a warning is output, and the middleware and the proxy apply parts of a turn.
    for _, sentence in dead_stages([turn]):
        warnings.warn(sentence, stacklevel=2)
    return await loop(turn, state, interpret, emitter=emitter or Emitter(None, state), cancel=cancel, keep=keep)


async def loop(
    turn: Stage,
    state: State,
    interpret: Interpreter,
    *,
    emitter: Emitter,
    cancel: asyncio.Event | None = None,
    keep: Keep | None = None,
) -> Result[Finished, Halted]:
    """Run from this state to a typed end. Setting `cancel` ends the run at once, with every call answered.

    `emitter` tells what happens; `keep` is given each state that awaits an effect, before the effect is performed.
    """
    while True:
        # What has come back is written down first: it may have ended the run, and the rules judge it.
        if is_set(cancel) and not isinstance(state.phase, Executed):
            return emitter.halted(cancelled(interrupt(state)))
        moved = advanced(turn, state)
        if not isinstance(moved, Success):
            return emitter.halted(Halted(halt=moved.failure(), state=state))
        before, state = state, moved.unwrap()
        emitter.moved(before, state)
        match state.phase:
            case Done(outcome=outcome):
                return Success(Finished(outcome=outcome, state=state))
            case Awaiting(effect=effect):
                arrived = await performed(effect, state, interpret, emitter, cancel=cancel, keep=keep)
                if not isinstance(arrived, Success):
                    return emitter.halted(arrived.failure())
                state = arrived.unwrap()
            case _:
                pass  # the turn is over, the next begins
