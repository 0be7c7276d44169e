"""What is heard of a run: its events, without their stamps and without the start that every run has."""

from collections.abc import Callable

from forge.runtime.emitter import OnEvent
from stages.events import Connected, Event, RunStarted, Stamped
from stages.wire.deltas import Delta


def heard_by(listen: Callable[[Event], object]) -> OnEvent:
    """An `on_event` that passes on the events alone."""

    def on_event(stamped: Stamped) -> None:
        if not isinstance(stamped.event, RunStarted | Connected | Delta):
            listen(stamped.event)

    return on_event
