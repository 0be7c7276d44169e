"""The stage `enforce`: the guards judge whether calls may run."""

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from stages.effect import Refused
from stages.execution import batch_record, edit_accepted, edit_refused
from stages.halt import Halt, ToolsFailing
from stages.message import ToolCall, User
from stages.objection import (
    Guard,
    Say,
    Stop,
    Verdict,
    in_forges_words,
    mistake_of,
    not_a_verdict,
    refusals,
    render,
    with_mistakes,
)
from stages.options import checked
from stages.pipeline import Stage, name_of, on
from stages.progress import made
from stages.rules import Limits, OnViolation
from stages.seen import leaves
from stages.state import Edited, Ready, State, Vetted

_Keep = Callable[[State, tuple[ToolCall, ...]], tuple[tuple[ToolCall, ...], str]]
"""Which of several calls of a reply run now, and a note to the model about the others (`kept_calls`)."""


_LIMITS = Limits()


@checked
def enforce(
    *guards: Guard,
    on_violation: OnViolation = "block_all",
    keep: _Keep | None = None,
    say: Say = in_forges_words,
    limits: Limits = _LIMITS,
) -> Stage:
    """Keep the calls of a Vetted state that no guard objects to; if none is left, go to Ready with the corrections.

    With `block_all`, one objection refuses the whole batch, but only once: if a call that nothing is wrong with
    returns in another refused batch, it runs, so a model is not sent round in circles. The guards also judge the
    arguments that a person edited, in an Edited state; objections to these are not counted against the model. `say`
    words the corrections. Halts with `ToolsFailing` if objections that count as tool errors exceed their maximum.

    Raises OptionError for a guard that cannot be one, such as the function that makes it, and TypeError for an invalid
    verdict.
    """

    def vetted(state: State, phase: Vetted) -> State | Halt:
        if keep is not None and len(phase.calls) > 1:
            kept, notice = keep(state, phase.calls)
            told = "\n".join(filter(None, (notice, phase.notice)))
            phase = replace(phase, said=replace(phase.said, calls=kept), notice=told)
        calls, refused = phase.calls, phase.refused
        for guard in guards:
            verdict = _asked(guard, state, calls)
            if not verdict:
                continue
            if isinstance(verdict, Stop):
                return verdict.halt
            wrong = {objection.call.id for objection in verdict if objection.call}
            again = any(made(state.ledger, call).refused for call in calls if call.id not in wrong)
            whole = on_violation == "block_all" and not again
            state = replace(state, ledger=with_mistakes(state.ledger, verdict))
            failing = [one for one in verdict if one.call and mistake_of(one.wrong).counter == "tool_errors"]
            if failing and (attempts := state.ledger.tool_errors) > limits.max_tool_errors:
                last = failing[-1]
                return ToolsFailing(tool=last.tool, attempts=attempts, error=render(last))
            more = refusals(verdict, calls, partial(say, state), whole=whole)
            gone = {one.call_id for one in more}
            calls, refused = tuple(call for call in calls if call.id not in gone), refused + more
            if not calls:
                break
        judged = replace(phase, refused=refused, allowed=True)
        if calls:
            return state.to(judged)
        new = batch_record(judged.batch)
        return state.say(*new.messages).note(attempts=state.ledger.attempts + new.attempts).to(Ready())

    def edited(state: State, phase: Edited) -> State | Halt:
        if not phase.fit:
            return state
        call = replace(phase.ask.call, arguments=phase.arguments)
        gone = {result.call_id for result in phase.batch.results if isinstance(result, Refused)}
        calls = tuple(call if one.id == call.id else one for one in phase.batch.calls if one.id not in gone)
        # The edited values count as given: to the guards, the user has said them.
        as_told = state.say(User(text="\n".join(map(str, leaves(phase.arguments))), turn=state.ledger.turn))
        for guard in guards:
            verdict = _asked(guard, as_told, calls)
            if isinstance(verdict, Stop):
                return verdict.halt
            if wrong := [render(one) for one in verdict if one.call and one.call.id == call.id]:
                return state.to(edit_refused(phase, "\n".join(wrong)))
        return edit_accepted(state, phase, call)

    @on(Vetted, Edited)
    def stage(state: State, phase: Vetted | Edited) -> State | Halt:
        return vetted(state, phase) if isinstance(phase, Vetted) else edited(state, phase)

    return stage


def _asked(guard: Guard, state: State, calls: tuple[ToolCall, ...]) -> Verdict:
    verdict = guard(state, calls)
    if wrong := not_a_verdict(verdict, calls):
        raise TypeError(f"the guard {name_of(guard)} {wrong}")
    return verdict
