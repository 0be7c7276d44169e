"""The loop: apply the pipeline, perform the effect that it asks for, deliver the outcome, again.

`drive` is all of it. It knows neither a model nor a tool: what it is driven with decides.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from returns.result import Failure, Result, Success

from forge.errors import ForgeError, PipelineError, UnrecordedError
from forge.interpreters import Interpreter
from forge.interpreters.patience import leave
from forge.outcome import Finished, Halted
from forge.runtime.log import log_event, logging_turns
from forge.runtime.options import checked
from stages import events
from stages.deliver import deliver, interrupt
from stages.effect import Ask, Outcome
from stages.execution.batch import waiting
from stages.halt import Cancelled, Halt, JournalFailed
from stages.pipeline import Stage, stuck
from stages.policy.rules import completed
from stages.state import Awaiting, Done, Executed, Ready, State

Observer = Callable[[events.Event], None]
T = TypeVar("T")


@checked
async def drive(
    turn: Stage,
    state: State,
    interpret: Interpreter,
    observer: Observer | None = None,
    cancel: asyncio.Event | None = None,
) -> Result[Finished, Halted]:
    """Run from this state to a typed end. Setting `cancel` ends the run at once, with every call answered."""
    watched = observer is not None or logging_turns()
    while True:
        if cancel is not None and cancel.is_set() and not _all_back(state):
            return _stopped(interrupt(state), observer)
        moved = turn(state)
        if not isinstance(moved, Success):
            return halted(moved.failure(), state, observer)
        before, state = state, moved.unwrap()
        if watched:
            _tell(observer, before, state)
        match state.phase:
            case Awaiting(effect=effect):
                if cancel is not None and cancel.is_set():
                    return _stopped(interrupt(state, begun=False), observer)
                arrived = await _outcome(state, cancel, interpret(effect))
                if isinstance(arrived, Halted):
                    return halted(arrived.halt, arrived.state, observer)
                delivered = deliver(state, arrived)
                if not isinstance(delivered, Success):
                    return halted(delivered.failure(), state, observer)
                before, state = state, delivered.unwrap()
                if watched:
                    _tell(observer, before, state)
            case Ready() if not isinstance(before.phase, Ready):
                pass  # the turn is over, the next begins
            case Done(outcome=outcome):
                return Success(Finished(outcome=outcome, state=state))
            case _:
                raise PipelineError(stuck(state.phase), state)


def _all_back(state: State) -> bool:
    """Whether every call of a batch has come back: what they did is written down first, it may have ended the run."""
    return isinstance(state.phase, Executed) and not waiting(state.phase.batch)


def _stopped(state: State, observer: Observer | None) -> Result[Never, Halted]:
    return halted(_cancelled(state), state, observer)


def _cancelled(state: State) -> Cancelled:
    return Cancelled(turns=state.ledger.turn, completed=completed(state.ledger))


def halted(halt: Halt, state: State, observer: Observer | None) -> Result[Never, Halted]:
    """The end of a run without its goal, told to the observer."""
    told = events.RunHalted(halt=halt)
    log_event(told, state.run)
    if observer is not None:
        notify(observer, told)
    return Failure(Halted(halt=halt, state=state))


async def _outcome(state: State, cancel: asyncio.Event | None, outcome: Awaitable[Outcome]) -> Outcome | Halted:
    """The outcome; or the end of the run, where `cancel` came first or the journal can no longer be written.

    Any other ForgeError on the way carries the run's state, every call answered: what was done is not lost with it. A
    question is still to be asked.
    """
    try:
        arrived = await (outcome if cancel is None else _unless(cancel, outcome))
    except UnrecordedError as error:
        after = state if error.outcome is None else deliver(state, error.outcome).value_or(state)
        return Halted(halt=JournalFailed(problem=str(error)), state=interrupt(after, begun=False))
    except ForgeError as error:
        asked = isinstance(state.phase, Awaiting) and isinstance(state.phase.effect, Ask)
        error.state = error.state or (state if asked else interrupt(state))
        raise
    if arrived is None:
        stopped = interrupt(state)
        return Halted(halt=_cancelled(stopped), state=stopped)
    return arrived


async def _unless(cancel: asyncio.Event, outcome: Awaitable[Outcome]) -> Outcome | None:
    """The outcome, or None if `cancel` is set before it comes; what was performing it is then cancelled.

    What comes all the same, at the same moment or while it is being stopped, is the outcome: it has happened. What
    does not let itself be stopped is left behind.
    """
    performing = asyncio.ensure_future(outcome)
    cancelled = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({performing, cancelled}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        cancelled.cancel()
        performing.cancel()
        await asyncio.wait({performing, cancelled}, timeout=GRACE)
        leave(performing)
    return performing.result() if performing.done() and not performing.cancelled() else None


GRACE = 5.0
"""Seconds that what is cancelled has to end."""


def _tell(observer: Observer | None, before: State, after: State) -> None:
    for event in events.observe(before, after):
        log_event(event, after.run)
        if observer is not None:
            notify(observer, event)


def notify(watcher: Callable[[T], None], what: T) -> None:
    """Call someone who watches: one that fails is reported, and the run goes on as if it were not there."""
    try:
        watcher(what)
    except Exception:
        logging.getLogger("forge").exception("an observer failed at the event %s", type(what).__name__)
