"""Notes at the end of one prompt about limits that are near and remaining steps. They never enter the history."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from stages import nudges
from stages.halt import Halt
from stages.message import Kind, Tool, User
from stages.nudges import first_few
from stages.order import current_successes, times_used
from stages.pipeline import Stage, on
from stages.rules import Rules, denied, listed_values_left, outdated, pending, required_tools, unsettled_steps
from stages.state import Folded, State

# A note is kept beside the view, so neither the history nor the next prompt contains it. It comes last, so that the
# prompt's prefix stays the same.


def warn_of_calls(rules: Rules, calls: int) -> Stage:
    """Tell the model in a Folded state how many model calls are left, once there are at most `calls`."""

    @on(Folded)
    def stage(state: State, phase: Folded) -> State | Halt:
        left = state.ledger.budget.calls
        if not 0 < left <= calls or phase.summary:
            return state
        said = nudges.few_calls(left, pending(rules, state.ledger), _ends(rules))
        return _warned(state, phase, said, Kind.ITERATION_WARNING)

    return stage


def note_progress(rules: Rules) -> Stage:
    """Tell the model in a Folded state which steps are done and which remain, after successful calls.

    After any other reply, it is only told what was wrong: notes there made runs longer.
    """

    @on(Folded)
    def stage(state: State, phase: Folded) -> State | Halt:
        last = state.history[-1] if state.history else None
        well = isinstance(last, Tool) and last.kind is Kind.TOOL_RESULT and last.status == "succeeded"
        if phase.summary or not well:
            return state
        left = pending(rules, state.ledger)
        done = [step for step in required_tools(rules) if state.succeeded(step) and step not in left]
        answered = _answered(unsettled_steps(rules, state)[:1], state)
        steps = [_counted(step, rules, state) for step in left]
        said = nudges.progress(done, steps, _ends(rules), answered)
        return _warned(state, phase, said, Kind.PROGRESS_NOTE)

    return stage


def _answered(steps: Sequence[str], state: State) -> Mapping[str, str]:
    """The latest results of these steps."""
    made = [m for m in state.history if isinstance(m, Tool) and m.name in steps] if steps else []
    return {m.name: m.text for m in made if m.kind is Kind.TOOL_RESULT and m.status == "succeeded"}


def _counted(step: str, rules: Rules, state: State) -> str:
    """The step, with how often it is still needed, or why it is needed again."""
    if denied(rules, state.ledger, [step]):
        return f"{step} (its last answer does not count)"
    if outdated(rules, state.ledger, [step]):
        return f"{step} (again)"
    if left := next((one.values for one in listed_values_left(rules, state.ledger) if one.tool == step), ()):
        return f"{step} (still for {first_few(left)})"
    use = max((use for use in rules.order if use.tool == step), key=lambda use: use.at_least, default=None)
    if use is None or use.at_least <= 1:
        return step
    done = times_used(use, current_successes(rules.order, state.ledger.successes))
    return f"{step} ({done} of {use.at_least} times{', each time with other arguments' if use.distinct else ''})"


def _ends(rules: Rules) -> tuple[str, ...]:
    """The tools that end the run; empty if text does."""
    return () if rules.on_text == "accept" else rules.terminal


def _warned(state: State, phase: Folded, text: str, kind: Kind) -> State:
    note = User(text=text, kind=kind, turn=state.ledger.turn)
    return state.to(replace(phase, notes=(*phase.notes, note)))
