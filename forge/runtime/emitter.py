"""Emitter: stamps the events of a run, and passes them to whoever listens and to the log."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Never, Self, TypeVar

from returns.result import Failure, Result

from forge import observation
from forge.outcome import Halted
from forge.runtime.log import log_event, logging_turns
from stages.deliver import interrupt
from stages.effect import Outcome
from stages.events import Event, RunFailed, RunFinished, RunHalted, RunStarted, Stamped, closing, following, observe
from stages.state import State
from stages.wire.deltas import Delta

OnEvent = Callable[[Stamped], None]
"""Called with each event of a run; if it raises, that is logged and the run goes on."""

_T = TypeVar("_T")

_logger = logging.getLogger("forge")


def notify(option: str, listener: Callable[[_T], None], what: _T) -> None:
    """Call the listener passed as that option: one that fails is reported once, and the run goes on without it."""
    name = type(what.event if isinstance(what, Stamped) else what).__name__
    observation.quietly(lambda: listener(what), None, f"{option} failed at the event {name}", _logger)


class Calling(NamedTuple):
    """The run that is under way here, and its call that asked for the work; empty: none that is known."""

    emitter: "Emitter"
    call_id: str = ""


calling: ContextVar[Calling | None] = ContextVar("forge_calling", default=None)
"""Where a run begins, what asked for it: the parent of its events."""


class Emitter:
    """Stamps the events of one run. `agent` is the name of its workflow; `talks`: words are an answer to it.

    `recovering`: what happens has happened before, in a process that died, and telemetry was told of it there.
    """

    def __init__(self, on_event: OnEvent | None, state: State, agent: str = "", *, talks: bool = False) -> None:
        self.on_event = on_event
        self.run = state.run
        self._agent, self._talks = agent, talks
        self._parent = calling.get()
        self._state = state
        self._sequence = (state.ledger.effects, 0)
        self.listening = on_event is not None or logging_turns() or observation.observing()
        self.recovering = False
        self._end: Event | None = None

    @property
    def sequence(self) -> tuple[int, int]:
        """The number of the last event."""
        return self._sequence

    @contextmanager
    def working(self, message: str = "") -> Iterator[Self]:
        """The work of the run: it begins, and what it raises is told as its end."""
        begins = observation.RunBegins(run=self.run, name=self._agent, talks=self._talks)
        with observation.Observed(begins) as observed:
            self.pass_on(RunStarted(message=message))
            before = calling.set(Calling(self))
            try:
                yield self
            except BaseException as error:  # also of a cancelled task the run has an end
                # What is no Exception is a cancellation or a signal, depending on where it arrives: nobody's error.
                said = str(error) or type(error).__name__ if isinstance(error, Exception) else "the work was cancelled"
                self._tell(*closing(self._state), RunFailed(problem=said))
                raise
            finally:
                observed.outcome = self._end
                calling.reset(before)

    def pass_on(self, *events: Event | Delta) -> None:
        """Tell of what no state knows: it has the number of the event before it."""
        if not self.listening:
            return
        parent = self._parent
        for event in events:
            stamped = Stamped(
                run=self.run,
                agent=self._agent,
                parent=parent.emitter.run if parent else "",
                call_id=parent.call_id if parent else "",
                turn=self._state.ledger.turn,
                sequence=self._sequence,
                time=time.time(),
                event=event,
            )
            log_event(stamped)
            if isinstance(event, RunFinished | RunHalted | RunFailed):
                self._end = event
            if not self.recovering:
                observation.tell(stamped)
            if self.on_event is not None:
                notify("on_event", self.on_event, stamped)

    def moved(self, before: State, after: State, outcome: Outcome | None = None) -> None:
        """Tell what happened between two states; `outcome`: what the world answered, where that led to the second."""
        self._state = after
        if self.listening:
            self._tell(*observe(before, after, outcome))

    def cut_short(self, state: State, *, begun: bool = True) -> State:
        """The state of a run that is cut short in this one (`deliver.interrupt`), told."""
        self._tell(*closing(state, begun=begun))
        self._state = interrupt(state, begun=begun)
        return self._state

    def halted(self, end: Halted) -> Result[Never, Halted]:
        """The end of the run without its goal."""
        self._tell(RunHalted(halt=end.halt))
        return Failure(end)

    def _tell(self, *events: Event) -> None:
        for event in events:
            self._sequence = following(self._sequence, self._state)
            self.pass_on(event)
