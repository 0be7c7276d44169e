"""Stage, and how stages are made and composed."""

from collections.abc import Callable
from itertools import chain
from typing import Generic, TypeVar

from msgspec import Struct
from returns.result import Result, Success

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


class Composed(Struct, frozen=True):
    """Stages in running order as one; the first Halt ends it."""

    stages: tuple[Stage, ...]

    def __call__(self, state: State) -> Result[State, Halt]:
        """The stage."""
        result: Result[State, Halt] | None = None
        for stage in self.stages:
            # Most stages act in another phase: not even to call them saves a sixth of a turn.
            if not isinstance(stage, Acting):
                result = stage(state)
            elif isinstance(state.phase, stage.phase):
                result = stage.act(state, state.phase)
            else:
                continue
            if not isinstance(result, Success):
                return result
            state = result.unwrap()
        return Success(state) if result is None else result


def pipeline(*stages: Stage) -> Stage:
    """Compose stages in running order; the first Halt ends the composition."""
    parts = (stage.stages if isinstance(stage, Composed) else (stage,) for stage in stages)
    return Composed(tuple(chain.from_iterable(parts)))
