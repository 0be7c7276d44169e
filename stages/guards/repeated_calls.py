"""Repetition: no call a third time that was answered the same twice, or written twice, with nothing new in between."""

from stages.execution.unknown_outcomes import unknown_outcome
from stages.message import Kind, ToolCall, User
from stages.objection import Objection, Repeated
from stages.policy.escalation import offered_tools
from stages.policy.progress import answered_differently, times_answered, turns_written
from stages.policy.rules import Rules, repeating_tools
from stages.policy.untried_values import values_to_try
from stages.state import State
from stages.tool import ToolSpec
from stages.verdict import Guard, Verdict

_PROPOSED = 5
"""Values that a correction names."""


def repetition(rules: Rules) -> Guard:
    """Object to calls that were answered `max_repeats` times already, and in vain the last time.

    A write that is made again is in vain whatever it answers (`stages.policy.progress`). Tools that are `repeatable`
    may be called again and again. It never ends a run: the run escalates.
    """
    most = rules.max_repeats
    bound = {tool.name: tool for tool in rules.tools if not tool.repeatable}
    once = repeating_tools(rules).once

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        ledger = state.ledger
        if most is None or not ledger.attempts:
            return []
        again = [
            (call, count)
            for call in calls
            if call.name in bound and (count := _times(call, state, written=call.name in once)) >= most
        ]
        others = tuple(tool.name for tool in offered_tools(rules, state)) if again else ()
        return [
            Objection(
                call=call,
                wrong=Repeated(
                    times=count,
                    others=others,
                    values=_values(bound[call.name], state),
                    written=call.name in once and answered_differently(ledger, call.name, call.arguments),
                ),
            )
            for call, count in again
        ]

    return guard


def _times(call: ToolCall, state: State, *, written: bool) -> int:
    """How often it was made in vain; a write also since the user has last said something."""
    answered = times_answered(state.ledger, call.name, call.arguments)
    turns = turns_written(state.ledger, call.name, call.arguments) if written else ()
    if len(turns) <= answered:
        return answered
    asked = next((m.turn for m in reversed(state.history) if isinstance(m, User) and m.kind is Kind.USER_INPUT), 0)
    return max(answered, sum(turn > asked for turn in turns))


def _values(tool: ToolSpec, state: State) -> tuple[str, ...]:
    """What it could be called with instead; nothing while a person has to decide about a call of it."""
    return () if unknown_outcome(tool, state.ledger) else values_to_try(tool, state)[:_PROPOSED]
