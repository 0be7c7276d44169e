"""The loop: apply the pipeline, perform the effect that it asks for, deliver the outcome, again.

`drive` is all of it. It knows neither a model nor a tool: what it is driven with decides.
"""

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from returns.result import Failure, Result, Success

from forge.errors import CallbackError, DefinitionError, ForgeError, PipelineError, UnrecordedError
from forge.interpreters import Interpreter
from forge.interpreters.tools import leave
from forge.outcome import Finished, Halted
from forge.runtime.log import log_event, logging_turns
from stages import events
from stages.deliver import deliver, interrupt
from stages.effect import Ask, Effect, Outcome
from stages.execution import unanswered_calls
from stages.halt import Cancelled, Halt, JournalFailed
from stages.options import checking
from stages.pipeline import Stage, StuckError, advance
from stages.rules import completed
from stages.state import Awaiting, Done, Executed, State

# Checked: public functions hold their options to their annotations; a wrong one is a DefinitionError, in words.

checked_options = checking(DefinitionError)


# One application of a turn for everything in forge that runs one: the loop, replay, the middleware.


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


# Observers: who is told of a run's events, and of its end; one that fails does not end the run.

Observer = Callable[[events.Event], None]
_T = TypeVar("_T")

_logger = logging.getLogger("forge")


def tell(observer: Observer | None, before: State, after: State) -> None:
    """Tell the observer, if there is one, and the log what happened between two states."""
    for event in events.observe(before, after):
        log_event(event, after.run)
        if observer is not None:
            notify(observer, event)


def halted(end: Halted, observer: Observer | None) -> Result[Never, Halted]:
    """The end of a run without its goal, told to the observer."""
    told = events.RunHalted(halt=end.halt)
    log_event(told, end.state.run)
    if observer is not None:
        notify(observer, told)
    return Failure(end)


_failures: Counter[tuple[str, int]] = Counter()
"""How often the observers of this process have failed, by file and line."""


def notify(watcher: Callable[[_T], None], what: _T) -> None:
    """Call someone who watches: one that fails is reported, and the run goes on as if it were not there.

    Reported with its traceback the first time, then in one line whenever the count has doubled: a run has thousands of
    events, and an observer that fails at one mostly fails at all.
    """
    try:
        watcher(what)
    except Exception as error:
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = frame.f_code.co_filename, line
        _failures[place] += 1
        count, event = _failures[place], type(what).__name__
        if count == 1:
            _logger.exception("an observer failed at the event %s", event)
        elif count.bit_count() == 1:
            _logger.warning(
                "an observer failed at the event %s, %d times by now: %r (%s:%d)", event, count, error, *place
            )


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
        outcome = await (interpret(effect) if cancel is None else uncancelled(cancel, interpret(effect)))
    except UnrecordedError as error:
        after = state if error.outcome is None else deliver(state, error.outcome).value_or(state)
        return Failure(Halted(halt=JournalFailed(problem=str(error)), state=interrupt(after, begun=False)))
    except ForgeError as error:
        error.state = error.state or (state if isinstance(effect, Ask) else interrupt(state))
        raise
    if outcome is None:
        return Failure(cancelled(interrupt(state)))
    return deliver(state, outcome).alt(lambda halt: Halted(halt=halt, state=state))


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
