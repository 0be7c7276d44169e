"""The stages of a workflow: the list that says which there are, its mistakes, and the stages that it stands for."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Literal, get_args

from forge.runtime.callbacks import placed_stage
from stages.pipeline import Acting, Composed, Stage, name_of, not_a_stage
from stages.state import Answered, Executed, Folded, Phase, Prepared, Ready, Vetted

StageName = Literal["compact", "fold", "serialize", "send", "validate", "enforce", "execute"]
"""A stage of forge's own, as it is set up for a workflow on a model."""

STAGES: tuple[StageName, ...] = get_args(StageName)
"""All of them in running order."""

_LEAVES: Mapping[StageName, type[Phase]] = {
    "fold": Ready,
    "serialize": Folded,
    "send": Prepared,
    "validate": Answered,
    "enforce": Vetted,
    "execute": Executed,
}
"""The phase that a stage of one's own has to act in to take the place of that one; compaction may be left out."""


def stage_mistakes(stages: Sequence[StageName | Stage]) -> tuple[str, ...]:
    """What is wrong with the list, a sentence each."""
    named = [stage for stage in stages if isinstance(stage, str)]
    twice = [f"stages has {name!r} twice" for name in dict.fromkeys(named) if named.count(name) > 1]
    order = sorted(named, key=STAGES.index)
    if named != order:
        twice.append(f"stages has {', '.join(named)} in this order; they must run in the order {', '.join(order)}")
    alien = (
        f"stages[{place}]: {sentence}"
        for place, stage in enumerate(stages)
        if not isinstance(stage, str) and (sentence := not_a_stage(stage))
    )
    return (*twice, *alien, *_lacking(stages, named))


def _lacking(stages: Sequence[StageName | Stage], named: Sequence[StageName]) -> Iterator[str]:
    for name, phase in _LEAVES.items():
        if name not in named and not any(_acts_in(stage, phase) for stage in stages):
            why = " (enforce() of stages, without guards, allows every call)" if name == "enforce" else ""
            yield f"stages lacks {name!r}, and none of them acts in the phase {phase.__name__} in its place{why}"


def _acts_in(stage: StageName | Stage, phase: type[Phase]) -> bool:
    """Whether it may; a function that is not made with `on` may act in any."""
    if isinstance(stage, str):
        return False
    if isinstance(stage, Composed):
        return any(_acts_in(part, phase) for part in stage.stages)
    return not isinstance(stage, Acting) or phase in stage.phases


def arranged(stages: Sequence[StageName | Stage], made: Mapping[StageName, Mapping[str, Stage]]) -> dict[str, Stage]:
    """The list with forge's own stages as they were made, each under its name; names that were not made are left out.

    A name stands for one stage or several: with compaction comes the summary, with fold the warnings.
    """
    named = {stage: made.get(stage, {}) for stage in stages if isinstance(stage, str)}
    taken = {name for group in named.values() for name in group}
    found: dict[str, Stage] = {}
    for place, stage in enumerate(stages):
        if isinstance(stage, str):
            found.update(named[stage])
        else:
            name = _free(name_of(stage), taken)
            taken.add(name)
            found[name] = placed_stage(stage, f"stages[{place}]")
    return found


def _free(name: str, taken: Collection[str]) -> str:
    numbered = (f"{name} {n}" for n in count(2))
    return next(one for one in chain([name], numbered) if one not in taken)
