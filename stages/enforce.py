"""The stage `enforce`: ask the guards whether the calls may run."""

from collections.abc import Callable

from msgspec.structs import replace

from stages.effect import Refused
from stages.execution.approvals import accepted, judged, objection, refused, told
from stages.execution.batch import written
from stages.halt import Halt
from stages.message import ToolCall
from stages.options.option_checks import OptionError, checked
from stages.pipeline import Stage, on, pipeline
from stages.policy.progress import attempts_since_progress
from stages.policy.rules import OnViolation
from stages.schema.canonical_json import canonical
from stages.state import Edited, Ready, State, Vetted
from stages.verdict import Allow, Block, Guard, Stop, not_a_guard

Keep = Callable[[State, tuple[ToolCall, ...]], tuple[tuple[ToolCall, ...], str]]
"""Which calls of a reply go on, and what the model is told of the others."""


@checked
def enforce(*guards: Guard, on_violation: OnViolation = "block_all", keep: Keep | None = None) -> Stage:
    """Hand on a Vetted state with the calls that every guard allows; without any, a Ready one with corrections.

    A batch is refused whole once. If a call of it that was fine comes back in another that is refused, it runs: the
    same is never refused in the same way twice. What a person wrote, in an Edited state, is asked about too; it
    is no mistake of the model's, and counts as none.

    Raises OptionError for what is no guard, such as the function that makes one.
    """
    if wrong := tuple(f"guards[{i}]: {said}" for i, one in enumerate(guards) if (said := not_a_guard(one))):
        raise OptionError(wrong)

    @on(Vetted)
    def stage(state: State, phase: Vetted) -> State | Halt:
        if keep is not None and len(phase.calls) > 1:
            phase = _kept(phase, *keep(state, phase.calls))
        calls, refused = phase.calls, phase.refused
        for guard in guards:
            match guard(state, calls):
                case Allow():
                    continue
                case Stop(halt=halt):
                    return halt
                case Block() as block:
                    whole = on_violation == "block_all" and not _came_back(state, block, calls)
                    more = _refusals(block, calls, whole=whole)
                    gone = {one.call_id for one in more}
                    calls, refused = tuple(call for call in calls if call.id not in gone), refused + more
                    count: int = getattr(state.ledger, block.counter)
                    state = state.note(**{block.counter: count + 1})
                case other:
                    raise TypeError(f"a guard answered {other!r}; it must return Allow(), Block(…) or Stop(…)")
            if not calls:
                break
        vetted = replace(phase, refused=refused, allowed=True)
        return state.to(vetted) if calls else _refused(state, vetted)

    @on(Edited)
    def edited(state: State, phase: Edited) -> State | Halt:
        if not phase.fit:
            return state
        calls, as_told = judged(phase), told(state, phase)
        for guard in guards:
            match guard(as_told, calls):
                case Stop(halt=halt):
                    return halt
                case Block() as block if problem := objection(block, phase):
                    return state.to(refused(phase, problem))
                case _:
                    pass
        return state.to(accepted(phase))

    return pipeline(stage, edited)


def _kept(phase: Vetted, calls: tuple[ToolCall, ...], notice: str) -> Vetted:
    return replace(phase, said=replace(phase.said, calls=calls), notice="\n".join(filter(None, (notice, phase.notice))))


def _refusals(block: Block, calls: tuple[ToolCall, ...], *, whole: bool) -> tuple[Refused, ...]:
    if [c.call_id for c in block.corrections] != [call.id for call in calls]:
        raise ValueError("a guard's Block must have one correction for each call of the batch, in their order")
    corrections = (c for c in block.corrections if whole or not c.beside)
    return tuple(Refused(call_id=c.call_id, text=c.text, kind=block.kind) for c in corrections)


def _came_back(state: State, block: Block, calls: tuple[ToolCall, ...]) -> bool:
    """Whether a call that there is nothing against was refused with another one since the last progress."""
    before = {(a.name, canonical(a.arguments)) for a in attempts_since_progress(state.ledger) if not a.answer}
    beside = {correction.call_id for correction in block.corrections if correction.beside}
    return bool(before) and any((c.name, canonical(c.arguments)) in before for c in calls if c.id in beside)


def _refused(state: State, phase: Vetted) -> State:
    """The next turn, with every call answered by what is wrong with it."""
    new = written(phase.batch)
    return state.say(*new.messages).note(attempts=state.ledger.attempts + new.attempts).to(Ready())
