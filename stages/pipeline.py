"""Stage, and how stages are made and composed."""

from collections.abc import Callable
from operator import methodcaller
from typing import Generic, TypeVar

from msgspec import Struct
from returns.result import Result, Success
from toolz import compose_left

from stages.halt import Halt
from stages.state import Phase, State

Stage = Callable[[State], Result[State, Halt]]
"""A pure function from state to state, or to the typed reason for which the run ends."""

P = TypeVar("P", bound=Phase)


class Acting(Struct, Generic[P], frozen=True):
    """A stage that acts in one phase, given with the state, and hands on every other state untouched."""

    phase: type[P]
    act: Callable[[State, P], Result[State, Halt]]

    def __call__(self, state: State) -> Result[State, Halt]:
        """The stage."""
        return self.act(state, state.phase) if isinstance(state.phase, self.phase) else Success(state)


def on(phase: type[P]) -> Callable[[Callable[[State, P], Result[State, Halt]]], Stage]:
    """Make a stage that acts in one phase out of a function of the state and that phase."""
    return lambda act: Acting(phase, act)


def falling_back(stage: Stage, other: Stage) -> Stage:
    """The stage, and the other instead of it once the server has refused tools (`Ledger.fallback`)."""
    return lambda state: (other if state.ledger.fallback else stage)(state)


def pipeline(*stages: Stage) -> Stage:
    """Compose stages in running order; the first Halt ends the composition."""
    composed: Stage = compose_left(
        Success, *(_passing(s) if isinstance(s, Acting) else methodcaller("bind", s) for s in stages)
    )
    return composed


def _passing(stage: Acting[P]) -> Callable[[Result[State, Halt]], Result[State, Halt]]:
    """What `bind(stage)` does, without a new container where the state is handed on: a sixth of a turn's cost."""
    phase, act = stage.phase, stage.act

    def bound(result: Result[State, Halt]) -> Result[State, Halt]:
        if not isinstance(result, Success):
            return result
        state: State = result.unwrap()
        return act(state, state.phase) if isinstance(state.phase, phase) else result

    return bound
