"""Stage, and how stages are made and composed."""

import inspect
from collections.abc import Callable
from functools import wraps
from itertools import chain
from typing import Generic, TypeVar, get_args

from msgspec import Struct
from returns.result import Failure, Result, Success

from stages.halt import Halt
from stages.state import Answered, Edited, Executed, Folded, Phase, Prepared, Ready, State, Vetted

Stage = Callable[[State], Result[State, Halt]]
"""A pure function from state to state, or to the typed reason for which the run ends."""

P = TypeVar("P", bound=Phase)

_PHASES: tuple[type[Phase], ...] = get_args(Phase)
_HALTS: tuple[type[Halt], ...] = get_args(Halt)


class StageError(TypeError):
    """Something else than a stage was composed, or a stage returned neither a State nor a Halt."""


class Acting(Struct, Generic[P], frozen=True, repr_omit_defaults=True):
    """A stage that acts in one phase, given with the state, and hands on every other state untouched."""

    phase: type[P]
    act: Callable[[State, P], Result[State, Halt]]

    def __call__(self, state: State) -> Result[State, Halt]:
        """The stage."""
        return self.act(state, state.phase) if isinstance(state.phase, self.phase) else Success(state)

    def __repr__(self) -> str:
        """Its name and its phase."""
        return f"<stage {name_of(self)} on {self.phase.__name__}>"


def on(phase: type[P]) -> Callable[[Callable[[State, P], State | Halt]], Stage]:
    """Make a stage that acts in one phase out of a function of the state and that phase.

    The function returns the next State, or the Halt that ends the run. The stage raises StageError for anything else.
    An async function is a StageError at once.
    """
    if phase not in _PHASES:
        known = ", ".join(kind.__name__ for kind in _PHASES)
        raise StageError(f"@on takes the phase in which the stage acts, as in @on(Answered); the phases are {known}")

    def made(act: Callable[[State, P], State | Halt]) -> Stage:
        if inspect.iscoroutinefunction(act):
            raise StageError(_is_async(name_of(act)))
        return Acting(phase, _lifted(act))

    return made


def _lifted(act: Callable[[State, P], State | Halt]) -> Callable[[State, P], Result[State, Halt]]:
    @wraps(act)
    def moved(state: State, phase: P) -> Result[State, Halt]:
        return as_result(act(state, phase), act)

    return moved


def as_result(made: State | Halt | Result[State, Halt], by: Callable[..., object]) -> Result[State, Halt]:
    """What a stage returned, as a Result; one already is handed on. StageError, naming the stage, for anything else."""
    match made:
        case Success(State()):
            return made
        case State():
            return Success(made)
        case Failure(halt) if isinstance(halt, _HALTS):
            return made
        case _ if isinstance(made, _HALTS):
            return Failure(made)
        case _:
            raise StageError(
                f"the stage {name_of(by)} returned {repr(made)[:200]}; it must return a State or a Halt, "
                "such as state.to(phase)"
            )


def falling_back(stage: Stage, other: Stage) -> Stage:
    """The stage, and the other instead of it once the server has refused tools (`Ledger.fallback`)."""
    return lambda state: (other if state.ledger.fallback else stage)(state)


_Act = Callable[[State, Phase], Result[State, Halt]]
_Ahead = dict[type[Phase], tuple[_Act, "_Ahead"]]
"""By the phase that a state is in: the next stage that acts in it, and what is ahead of a state behind that stage."""


def _ahead(stages: tuple[Stage, ...]) -> _Ahead:
    ahead: _Ahead = {}
    for stage in reversed(stages):
        if isinstance(stage, Acting):
            ahead = {**ahead, stage.phase: (stage.act, ahead)}
        else:
            ahead = dict.fromkeys(_PHASES, (_in_any(stage), ahead))
    return ahead


def _in_any(stage: Stage) -> _Act:
    return lambda state, _: as_result(stage(state), stage)


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

    def __repr__(self) -> str:
        """The names of its stages."""
        return f"pipeline({', '.join(dict.fromkeys(map(name_of, self.stages)))})"


def pipeline(*stages: Stage) -> Stage:
    """Compose stages in running order; the first Halt ends the composition.

    Any number in any order is a stage again, so that parts can be tried by themselves. Raises StageError for what is
    no stage. What a whole turn lacks is told where it is run (`stuck`).
    """
    if wrong := [f"stage {i}: {sentence}" for i, one in enumerate(stages, 1) if (sentence := not_a_stage(one))]:
        raise StageError("\n".join(wrong))
    parts = (stage.stages if isinstance(stage, Composed) else (stage,) for stage in stages)
    return Composed(tuple(chain.from_iterable(parts)))


def not_a_stage(given: object) -> str | None:
    """Why that can be no stage, as a sentence; None where it may be one."""
    if isinstance(given, Acting | Composed):
        return None
    shown = getattr(given, "__name__", repr(given)[:200])
    if not callable(given):
        return f"{shown} is no stage; a stage is a function from State to Result[State, Halt], made with @on(Phase)"
    if isinstance(given, type):
        return f"{shown} is a class; write {shown}(…)"
    if inspect.iscoroutinefunction(given):
        return _is_async(shown)
    try:
        signature = inspect.signature(given)
    except ValueError:  # some functions written in C have none
        return None
    if signature.return_annotation in (Stage, "Stage"):
        return f"{shown} makes a stage; call it, as in {shown}(…)"
    try:
        signature.bind(State)
    except TypeError as error:
        return f"{shown} cannot be called with a State alone: {error}; put @on(Phase) over a function of both"
    return None


def _is_async(name: str) -> str:
    return f"{name} is async; a stage does no I/O: it puts an effect into the state, and the driver performs it"


def name_of(stage: Callable[..., object]) -> str:
    """What it is called: the name of its function, or of the function that made it."""
    if isinstance(stage, Acting):
        return name_of(stage.act)
    if isinstance(stage, Composed):
        return ", ".join(dict.fromkeys(map(name_of, stage.stages)))
    *makers, own = str(getattr(stage, "__qualname__", type(stage).__name__)).split(".<locals>.")
    ours = str(getattr(stage, "__module__", "")).startswith("stages.")
    return makers[-1] if makers and (ours or own in ("stage", "<lambda>")) else own.rpartition(".")[2]


def stuck(phase: Phase) -> str:
    """What a pipeline lacks that leaves a run in this phase, as a sentence."""
    name = type(phase).__name__
    if isinstance(phase, Vetted) and not phase.allowed:
        return (
            f"the pipeline leaves the run in {name}: no stage asked the guards whether the calls may run. Put "
            "enforce(…) between validate and execute; enforce() without guards allows every call"
        )
    if isinstance(phase, Vetted):
        return f"the pipeline leaves the run in {name}: no stage after enforce runs the calls; put execute(…) there"
    stage = _LEFT_BY.get(type(phase))
    return f"the pipeline leaves the run in {name}: no stage of it acts there" + (f", as {stage} does" if stage else "")


_LEFT_BY: dict[type[Phase], str] = {
    Ready: "fold",
    Folded: "serialize",
    Prepared: "send",
    Answered: "validate",
    Edited: "enforce",
    Executed: "execute",
}
