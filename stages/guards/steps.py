"""Required steps: no terminal call before every one of them has succeeded."""

from stages.halt import StepsSkipped
from stages.message import ToolCall
from stages.objection import Objection, StepsPending
from stages.policy.rules import Rules, denied, listed_values_left, outdated, pending
from stages.state import State
from stages.verdict import Guard, Stop, Verdict


def required_steps(rules: Rules) -> Guard:
    """Object to premature terminal calls, more pressing each time, then stop (`StepsSkipped`)."""
    ends = frozenset(rules.terminal)

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        early = [call for call in calls if call.name in ends]
        steps = pending(rules, state.ledger) if early else ()
        if not steps:
            return []
        attempt = state.ledger.premature + 1
        if attempt > rules.max_premature:
            return Stop(halt=StepsSkipped(tool=early[0].name, attempts=attempt, pending=steps))
        again, left = outdated(rules, state.ledger, steps), listed_values_left(rules, state.ledger)
        no = denied(rules, state.ledger, steps)
        wrong = StepsPending(steps=steps, attempt=attempt, again=again, left=left, denied=no)
        return [Objection(call=call, wrong=wrong) for call in early]

    return guard
