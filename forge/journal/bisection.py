"""Bisection: feeds the recorded outcomes to two pipelines, up to the first state in which they differ."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from returns.result import Result, Success

from forge.errors import JournalError, checked_options
from forge.journal.records import Journal, read_journal
from forge.journal.replaying import Difference, DivergenceError, as_recorded, differences, effect_name, steps
from forge.workflow.turn import stages_of
from forge.workflow.workflow import Workflow
from stages.halt import Halt
from stages.pipeline import Stage, pipeline
from stages.state import Awaiting, Done, State

Stages = Mapping[str, Stage]
"""The stages of a pipeline by name, in running order: `forge.workflow.turn.stages_of` gives those of a workflow."""


class Parting(Struct, frozen=True, kw_only=True):
    """Where two pipelines differ: the first stage after which their states differ, and what each made of `before`.

    `step` counts states as `states` does: that many states are the same. `turn` is the number of model calls
    made before. A `Halt` instead of a state means that the run ended there; then `found` is empty.
    """

    step: int
    turn: int
    stage: str
    before: State
    first: State | Halt
    second: State | Halt
    found: tuple[Difference, ...] = ()


@checked_options
def bisect(journal: str | Path | Journal, first: Workflow | Stages, second: Workflow | Stages) -> Parting | None:
    """The first state in which the two differ, given the recorded outcomes; None if they never do.

    What would follow is unknown: the model was never asked what the second would have asked it. JournalError if both
    agree but differ from the recorded run.
    """
    record = journal if isinstance(journal, Journal) else read_journal(journal)
    one, other = (
        stages_of(as_recorded(record, given), record.header.setup) if isinstance(given, Workflow) else given
        for given in (first, second)
    )
    try:
        for step in steps(record, pipeline(*one.values())):
            # No stage acts on a state that awaits an outcome or is over.
            if step.halt is None and not isinstance(step.state.phase, Awaiting | Done):
                parting = _parting(step.state, one, other, step.number + 1)
                if parting is not None:
                    return parting
    except DivergenceError as error:
        differing = effect_name(record.asked()[error.number - 1])
        sentence = f"both pipelines differ from the recorded run in {differing}"
        raise JournalError(f"{sentence}; forge replay shows where") from None
    return None


def _parting(state: State, one: Stages, other: Stages, step: int) -> Parting | None:
    """The first stage of the turn after which the two states differ."""
    now: Result[State, Halt] = Success(state)
    for name in _order([*one], [*other]):
        left = now.bind(one[name]) if name in one else now
        right = now.bind(other[name]) if name in other else now
        if left != right:
            before, first, second = now.unwrap(), _value(left), _value(right)
            both = isinstance(first, State) and isinstance(second, State)
            found = differences(first, second) if both else ()
            return Parting(
                step=step,
                turn=before.ledger.turn,
                stage=name,
                before=before,
                first=first,
                second=second,
                # What the state keeps of the request repeats the phase: leave it out unless it is the only difference.
                found=tuple(each for each in found if not each.path.startswith(_KEPT_OF_REQUESTS)) or found,
            )
        now = left
    return None


_KEPT_OF_REQUESTS = ("prompts", "memo", "ledger.prompt_size")


def _value(moved: Result[State, Halt]) -> State | Halt:
    return moved.unwrap() if isinstance(moved, Success) else moved.failure()


def _order(one: list[str], other: list[str]) -> list[str]:
    """The names of both in running order; a stage that only one has keeps its place."""
    merged: list[str] = []
    rest = list(other)
    for name in one:
        if name in rest:
            at = rest.index(name)
            merged += rest[:at]
            del rest[: at + 1]
        if name not in merged:
            merged.append(name)
    return merged + rest
