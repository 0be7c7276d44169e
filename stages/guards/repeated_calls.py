"""Repetition: no call a third time that was answered the same twice, with nothing new in between."""

from stages import nudges
from stages.message import Kind, ToolCall
from stages.policy.escalation import offered_tools
from stages.policy.progress import times_answered
from stages.policy.rules import Rules
from stages.policy.untried_values import values_to_try
from stages.state import State
from stages.verdict import Allow, Block, Correction, Guard, Verdict

PROPOSED = 5
"""Values that a correction names."""


def repetition(rules: Rules) -> Guard:
    """Block a batch with a call that was answered `max_repeats` times already, and in vain the last time.

    Tools that are `repeatable` may be called again and again. It never ends a run: the run escalates.
    """
    most = rules.max_repeats
    bound = {tool.name: tool for tool in rules.tools if not tool.repeatable}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        ledger = state.ledger
        if most is None or not ledger.attempts:
            return Allow()
        again = {call.id: times_answered(ledger, call.name, call.arguments) for call in calls if call.name in bound}
        if all(count < most for count in again.values()):
            return Allow()
        others = [tool.name for tool in offered_tools(rules, state)]
        values = {call.id: values_to_try(bound[call.name], state)[:PROPOSED] for call in calls if call.id in again}
        corrections = (
            Correction(
                call_id=call.id, text=nudges.repeated(call.name, again[call.id], others, values.get(call.id, ()))
            )
            if again.get(call.id, 0) >= most
            else Correction(call_id=call.id, text=nudges.beside_a_refused_call(call.name), beside=True)
            for call in calls
        )
        return Block(kind=Kind.RETRY_NUDGE, counter="repetitions", corrections=tuple(corrections))

    return guard
