"""The stages of a workflow: mistakes in the list, and the stages that its names stand for."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count

from forge.callbacks import placed_stage
from stages.pipeline import Acting, Composed, Stage, name_of, not_a_stage
from stages.state import (
    ENTRIES,
    LEADS_TO,
    STAGES,
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
    Vetted,
)

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
        f"stages lacks {name!r}, and none of them acts in the phase {phase.__name__} in its place"
        + (" (enforce() of stages, without guards, allows every call)" if name == "enforce" else "")
        for name, phase in replaceable.items()
        if name not in named and not any(_acts_in(stage, phase) for stage in stages)
    ]
    return (*twice, *alien, *lacking, *_never_acting(stages))


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


def _never_acting(stages: Sequence[StageName | Stage]) -> Iterator[str]:
    """The user's stages where no state is ever in their phase: a redaction there would redact nothing."""
    present = ENTRIES
    for place, stage in enumerate(stages):
        if isinstance(stage, str):
            acts = STAGES[stage]
            if acts.leaves and acts.phases[0] in present:
                present = (present - acts.leaves) | LEADS_TO[acts.phases[0]]
            continue
        # A composed part may hold stages for other places; one that was not made with `on` may act anywhere.
        parts = [
            part for part in (stage.stages if isinstance(stage, Composed) else (stage,)) if isinstance(part, Acting)
        ]
        phases = dict.fromkeys(phase for part in parts for phase in part.phases)
        if phases and present.isdisjoint(phases):
            named = " or ".join(phase.__name__ for phase in phases)
            where = ", or ".join(_PLACES[phase] for phase in phases)
            yield (
                f"stages[{place}]: {name_of(stage)} would never act: it acts in the phase {named}, and no state is in "
                f"it there; put it {where}"
            )
        present = present.union(*(LEADS_TO.get(phase, frozenset()) for phase in present.intersection(phases)))


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
