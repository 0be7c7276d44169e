"""One effect performed for the loop, unless the run is cancelled first, and its outcome delivered."""

import asyncio
from collections.abc import Awaitable, Callable

from returns.result import Failure, Result

from forge.errors import ForgeError, UnrecordedError
from forge.interpreters import Interpreter
from forge.interpreters.time_limits import leave
from forge.outcome import Halted
from stages.deliver import deliver, interrupt
from stages.effect import Ask, Effect, Outcome
from stages.halt import Cancelled, JournalFailed
from stages.rules import completed
from stages.state import State

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
    effect: Effect, state: State, interpret: Interpreter, cancel: asyncio.Event | None, keep: Keep | None
) -> Result[State, Halted]:
    """The state after the effect; or the end of the run: by its outcome, by `cancel`, or for a journal that fails.

    Any other ForgeError on the way carries the run's state, every call answered: what was done is not lost with it. A
    question is still to be asked.
    """
    if is_set(cancel):
        return Failure(cancelled(interrupt(state, begun=False)))
    try:
        if keep is not None:
            await keep(state)
        outcome = await (interpret(effect) if cancel is None else _unless(cancel, interpret(effect)))
    except UnrecordedError as error:
        after = state if error.outcome is None else deliver(state, error.outcome).value_or(state)
        return Failure(Halted(halt=JournalFailed(problem=str(error)), state=interrupt(after, begun=False)))
    except ForgeError as error:
        error.state = error.state or (state if isinstance(effect, Ask) else interrupt(state))
        raise
    if outcome is None:
        return Failure(cancelled(interrupt(state)))
    return deliver(state, outcome).alt(lambda halt: Halted(halt=halt, state=state))


async def _unless(cancel: asyncio.Event, outcome: Awaitable[Outcome]) -> Outcome | None:
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
