"""Observers: who is told of a run's events, and of its end; one that fails does not end the run."""

import logging
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Never, TypeVar

from returns.result import Failure, Result

from forge.outcome import Halted
from forge.runtime.log import log_event
from stages import events
from stages.state import State

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
