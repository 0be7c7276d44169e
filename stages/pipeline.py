"""Stage, and how stages are made and composed."""

from collections.abc import Callable
from itertools import chain
from typing import Generic, TypeVar, get_args

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


_Act = Callable[[State, Phase], Result[State, Halt]]
_Ahead = dict[type[Phase], tuple[_Act, "_Ahead"]]
"""By the phase that a state is in: the next stage that acts in it, and what is ahead of a state behind that stage."""

_PHASES: tuple[type[Phase], ...] = get_args(Phase)


def _ahead(stages: tuple[Stage, ...]) -> _Ahead:
    ahead: _Ahead = {}
    for stage in reversed(stages):
        if isinstance(stage, Acting):
            ahead = {**ahead, stage.phase: (stage.act, ahead)}
        else:
            ahead = dict.fromkeys(_PHASES, (_in_any(stage), ahead))
    return ahead


def _in_any(stage: Stage) -> _Act:
    return lambda state, _: stage(state)


class Composed:
    """Stages in running order as one; the first Halt ends it. A stage that does not act is not even called."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages = stages
        self._ahead = _ahead(stages)

    def __call__(self, state: State) -> Result[State, Halt]:
        """The stage."""
        result: Result[State, Halt] | None = None
        ahead = self._ahead
        while found := ahead.get(type(state.phase)):
            act, ahead = found
            result = act(state, state.phase)
            match result:
                case Success(moved):
                    state = moved
                case _:
                    return result
        return Success(state) if result is None else result


def pipeline(*stages: Stage) -> Stage:
    """Compose stages in running order; the first Halt ends the composition."""
    parts = (stage.stages if isinstance(stage, Composed) else (stage,) for stage in stages)
    return Composed(tuple(chain.from_iterable(parts)))
