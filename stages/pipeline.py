"""Stage, and how stages are made and composed."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from returns.pointfree import bind
from returns.result import Result, Success
from toolz import compose_left

from stages.halt import Halt
from stages.state import Phase, State

Stage = Callable[[State], Result[State, Halt]]
"""A pure function from state to state, or to the typed reason for which the run ends."""

P = TypeVar("P", bound=Phase)


def on(phase: type[P]) -> Callable[[Callable[[State, P], Result[State, Halt]]], Stage]:
    """Make a stage that acts in one phase, given with the state, and hands on every other state untouched."""

    def decorate(act: Callable[[State, P], Result[State, Halt]]) -> Stage:
        @wraps(act)
        def stage(state: State) -> Result[State, Halt]:
            return act(state, state.phase) if isinstance(state.phase, phase) else Success(state)

        return stage

    return decorate


def pipeline(*stages: Stage) -> Stage:
    """Compose stages in running order; the first Halt ends the composition."""
    composed: Stage = compose_left(Success, *map(bind, stages))
    return composed
