"""The stages of a workflow: mistakes in the list, and the stages that its names stand for."""

from collections.abc import Mapping, Sequence
from itertools import chain, count

from forge.callbacks import placed_stage
from stages.pipeline import Acting, Composed, Stage, dead_stages, name_of, not_a_stage
from stages.state import STAGES, Phase, StageName

STAGE_NAMES = tuple(STAGES)
"""Forge's own stages, in running order."""


def stage_mistakes(stages: Sequence[StageName | Stage]) -> tuple[str, ...]:
    """The mistakes in the list, one sentence each."""
    named = [stage for stage in stages if isinstance(stage, str)]
    twice = [f"stages has {name!r} twice" for name in dict.fromkeys(named) if named.count(name) > 1]
    order = sorted(named, key=STAGE_NAMES.index)
    if named != order:
        twice.append(f"stages has {', '.join(named)} in this order; they must run in the order {', '.join(order)}")
    alien = (
        f"stages[{place}]: {sentence}"
        for place, stage in enumerate(stages)
        if not isinstance(stage, str) and (sentence := not_a_stage(stage))
    )
    # A stage that replaces one of these must act in its main phase. Compaction is optional.
    replaceable = {name: acts.phases[0] for name, acts in STAGES.items() if name != "compact"}
    lacking = [
        f"stages has neither {name!r} nor a replacement that acts on {phase.__name__}"
        + (" (enforce() of stages, without guards, allows every call)" if name == "enforce" else "")
        for name, phase in replaceable.items()
        if name not in named and not any(_acts_in(stage, phase) for stage in stages)
    ]
    dead = (f"stages[{place}]: {sentence}" for place, sentence in dead_stages(stages))
    return (*twice, *alien, *lacking, *dead)


def _acts_in(stage: StageName | Stage, phase: type[Phase]) -> bool:
    """Whether the stage may act in that phase; a function that is not made with `on` may act in any."""
    if isinstance(stage, str):
        return False
    if isinstance(stage, Composed):
        return any(_acts_in(part, phase) for part in stage.stages)
    return not isinstance(stage, Acting) or phase in stage.phases


def arranged(stages: Sequence[StageName | Stage], made: Mapping[StageName, Mapping[str, Stage]]) -> dict[str, Stage]:
    """The stages of the list by name, forge's own as they were made; names that were not made are left out.

    A name may stand for several stages: `compact` for the summary, too, `fold` for the warnings.
    """
    named = {stage: made.get(stage, {}) for stage in stages if isinstance(stage, str)}
    taken = {name for group in named.values() for name in group}
    found: dict[str, Stage] = {}
    for place, stage in enumerate(stages):
        if isinstance(stage, str):
            found.update(named[stage])
        else:
            own = name_of(stage)
            name = next(one for one in chain([own], (f"{own} {n}" for n in count(2))) if one not in taken)
            taken.add(name)
            found[name] = placed_stage(stage, f"stages[{place}]")
    return found
