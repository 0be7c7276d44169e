"""Placeholders: no call with an argument that only stands for a value: `<customer_id>`, `{{result}}`."""

from stages import nudges
from stages.message import Kind, ToolCall
from stages.policy.placeholder_values import placeholder_arguments
from stages.policy.rules import Rules
from stages.state import State
from stages.verdict import Allow, Block, Correction, Guard, Verdict


def no_placeholders(rules: Rules) -> Guard:
    """Block a batch with such a call. Counts as a refusal; the budget bounds it."""
    tools = {tool.name: tool for tool in rules.tools}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        found = {c.id: names for c in calls if c.name in tools and (names := placeholder_arguments(c, tools, state))}
        if not found:
            return Allow()
        corrections = (
            Correction(call_id=call.id, text=nudges.placeholder(call.name, found[call.id]))
            if call.id in found
            else Correction(call_id=call.id, text=nudges.beside_a_refused_call(call.name), beside=True)
            for call in calls
        )
        return Block(kind=Kind.RETRY_NUDGE, counter="refusals", corrections=tuple(corrections))

    return guard
