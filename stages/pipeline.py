"""Stages: made with `on`, composed with `pipeline`, applied with `advance`."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Generic, TypeVar, get_args, overload

from msgspec import Struct
from returns.result import Failure, Result, Success
from toolz import compose_left

from stages.halt import Halt
from stages.options import is_async, unfit_function
from stages.state import (
    ENTRIES,
    LEADS_TO,
    STAGES,
    Acts,
    Answered,
    Awaiting,
    Done,
    Edited,
    Executed,
    Folded,
    Phase,
    Prepared,
    Ready,
    StageName,
    State,
    Vetted,
    missing_stage,
)

Stage = Callable[[State], Result[State, Halt]]
"""A pure function from a state to the next one, or to the Halt that ends the run."""

P = TypeVar("P", bound=Phase)
Q = TypeVar("Q", bound=Phase)

_PHASES: tuple[type[Phase], ...] = get_args(Phase)
_HALTS: tuple[type[Halt], ...] = get_args(Halt)
_MOST_PHASES = 2


class StageError(TypeError):
    """Something other than a stage was composed, or a stage returned neither a State nor a Halt."""


class StuckError(StageError):
    """A composition left a run in a phase in which none of its stages acts; `state` is where it stopped."""

    def __init__(self, state: State) -> None:
        super().__init__(missing_stage(state.phase))
        self.state = state


class Acting(Struct, Generic[P], frozen=True):
    """A stage that acts in some phases, and returns states in all others unchanged. Made by `on`."""

    phases: tuple[type[P], ...]
    act: Callable[[State, P], State | Halt]

    def __call__(self, state: State) -> Result[State, Halt]:
        """The stage."""
        return lifted(bind(self)(state))

    def __repr__(self) -> str:
        """Its name and its phases."""
        return f"<stage {name_of(self)} on {', '.join(phase.__name__ for phase in self.phases)}>"


class Composed(Struct, frozen=True):
    """Stages in running order, and their composition. Made by `pipeline`."""

    stages: tuple[Stage, ...]
    whole: Stage

    def __call__(self, state: State) -> Result[State, Halt]:
        """The stage."""
        return self.whole(state)

    def __repr__(self) -> str:
        """The names of its stages."""
        return f"pipeline({name_of(self)})"


def pipeline(*stages: Stage) -> Stage:
    """Compose stages in running order; the first Halt ends the composition.

    Any number of stages in any order makes a stage, so that parts can be tested by themselves; only `advance` reports
    that a whole turn lacks one. Raises StageError for anything that is not a stage.
    """
    if wrong := [f"stage {i}: {sentence}" for i, one in enumerate(stages, 1) if (sentence := not_a_stage(one))]:
        raise StageError("\n".join(wrong))
    # Composition is associative, so nested pipelines are flattened.
    parts = tuple(chain.from_iterable(one.stages if isinstance(one, Composed) else (one,) for one in stages))
    # Lifted once, at the end: to make a Result takes as long as many a stage.
    return Composed(parts, compose_left(*map(bind, parts), lifted))


def bind(stage: Stage) -> Callable[[State | Halt], State | Halt]:
    """The stage as a function that hands on a Halt, and states in whose phase the stage does not act."""
    # By the type, not by isinstance, which takes ten times as long: most stages are idle at any time.
    phases, act = (stage.phases, stage.act) if isinstance(stage, Acting) else (_PHASES, lambda state, _: stage(state))

    def bound(before: State | Halt) -> State | Halt:
        if type(before) is not State or type(before.phase) not in phases:
            return before
        after = act(before, before.phase)
        return after if type(after) is State else _checked(after, stage)

    return bound


def advance(turn: Stage, state: State) -> Result[State, Halt]:
    """Apply a turn's stages once. The run then awaits an effect, begins its next turn, or is done.

    A Failure is the Halt that ends the run. Raises StuckError if the run stops in any other phase, because a stage is
    missing.
    """
    moved = turn(state)
    if isinstance(moved, Success):
        after = moved.unwrap()
        rests = (Awaiting, Done) if type(state.phase) is Ready else (Awaiting, Done, Ready)
        if type(after.phase) not in rests:
            raise StuckError(after)
    return moved


@overload
def on(phase: type[P], /) -> Callable[[Callable[[State, P], State | Halt]], Stage]: ...


@overload
def on(phase: type[P], other: type[Q], /) -> Callable[[Callable[[State, P | Q], State | Halt]], Stage]: ...


def on(*phases: type[P]) -> Callable[[Callable[[State, P], State | Halt]], Stage]:
    """Make a stage from a function of a state and its phase. The stage acts in that phase, or in either of two.

    The function returns the next State, or the Halt that ends the run; the stage raises StageError for anything else.
    `on` itself raises StageError for an async function, and for one that does not take two arguments.
    """
    if not phases or not set(_PHASES).issuperset(phases):
        known = ", ".join(kind.__name__ for kind in _PHASES)
        raise StageError(f"@on takes the phase in which the stage acts, as in @on(Answered); the phases are {known}")
    if len(phases) > _MOST_PHASES:
        raise StageError(f"@on takes one phase or two, not {len(phases)}; write a stage for each, and compose them")

    def made(act: Callable[[State, P], State | Halt]) -> Stage:
        if is_async(act):
            raise StageError(_is_async(name_of(act)))
        if wrong := unfit_function(act, "state", "phase"):
            raise StageError(wrong)
        return Acting(phases, act)

    return made


def as_result(made: State | Halt | Result[State, Halt], by: Callable[..., object]) -> Result[State, Halt]:
    """The return value of a stage as a Result. StageError, with the stage's name, for an invalid one."""
    return lifted(_checked(made, by))


def lifted(made: State | Halt) -> Result[State, Halt]:
    """A state as a Success, a Halt as a Failure."""
    return Success(made) if isinstance(made, State) else Failure(made)


def _checked(made: State | Halt | Result[State, Halt], by: Callable[..., object]) -> State | Halt:
    match made:
        case State():
            return made
        case Success(State() as state):
            return state
        case Failure(halt) if isinstance(halt, _HALTS):
            return halt
        case _ if isinstance(made, _HALTS):
            return made
        case _:
            raise StageError(
                f"the stage {name_of(by)} returned {repr(made)[:200]}; it must return a State or a Halt, "
                "such as state.to(phase)"
            )


def not_a_stage(given: object) -> str | None:
    """Why this cannot be a stage, as a sentence; None if it may be one."""
    if isinstance(given, Acting | Composed):
        return None
    shown = getattr(given, "__name__", repr(given)[:200])
    if not callable(given):
        return f"{shown} is not a stage; a stage is a function from State to Result[State, Halt], made with @on(Phase)"
    if isinstance(given, type):
        return f"{shown} is a class; write {shown}(…)"
    if is_async(given):
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


_PLACES: Mapping[type[Phase], str] = {
    Ready: "before 'fold'",
    Folded: "after 'fold' and before 'serialize'",
    Prepared: "after 'serialize' and before 'send'",
    Awaiting: "after 'send'",
    Answered: "before 'validate'",
    Vetted: "after 'validate' and before 'execute'",
    Edited: "before 'enforce'",
    Executed: "before 'execute'",
    Done: "after 'execute'",
}


def dead_stages(turn: Iterable[StageName | Stage]) -> Iterator[tuple[int, str]]:
    """The stages of a whole turn that stand where no state is ever in a phase of theirs, and a sentence about each.

    A redaction there would redact nothing. The number is the place in `turn`, where names stand for forge's own stages.
    """
    present = ENTRIES
    for place, one in enumerate(turn):
        for part in one.stages if isinstance(one, Composed) else (one,):
            if acts := _own(part):
                if acts.leaves and acts.phases[0] in present:
                    present = (present - acts.leaves) | LEADS_TO[acts.phases[0]]
            elif isinstance(part, Acting):
                for phase in part.phases:
                    if phase not in present:
                        yield place, _dead(part, phase)
                # It may leave its phase or stay there.
                present = present.union(*(LEADS_TO.get(phase, ()) for phase in present.intersection(part.phases)))
            else:  # a function that was not made with `on` may lead anywhere
                present = frozenset(_PHASES)


def _own(stage: StageName | Stage) -> Acts | None:
    """What is known of the stage if it is one of forge's seven, by name or made by the function of that name."""
    module = getattr(stage.act, "__module__", "") if isinstance(stage, Acting) else f"stages.{stage}"
    return next((acts for name, acts in STAGES.items() if module == f"stages.{name}"), None)


def _dead(stage: Acting[Phase], phase: type[Phase]) -> str:
    name = phase.__name__
    if len(stage.phases) == 1:
        return f"{name_of(stage)} would never run here: no state is in phase {name}. Move it {_PLACES[phase]}"
    return (
        f"{name_of(stage)} would never run on {name} here: no state is in that phase. Move it {_PLACES[phase]}, or "
        "write a stage for each phase"
    )


def _is_async(name: str) -> str:
    return f"{name} is async; a stage does no I/O: it puts an effect into the state, and the driver performs it"


def name_of(stage: Callable[..., object]) -> str:
    """The stage's name: that of its function, or of the function that made it."""
    if isinstance(stage, Acting):
        return name_of(stage.act)
    if isinstance(stage, Composed):
        return ", ".join(dict.fromkeys(map(name_of, stage.stages)))
    *makers, own = str(getattr(stage, "__qualname__", type(stage).__name__)).split(".<locals>.")
    ours = str(getattr(stage, "__module__", "")).startswith("stages.")
    return makers[-1] if makers and (ours or own in ("stage", "<lambda>")) else own.rpartition(".")[2]
