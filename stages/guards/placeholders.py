"""Placeholders: no call with an argument that only stands for a value: `<customer_id>`, `{{result}}`."""

from stages.execution.unknown_outcomes import unknown_outcome
from stages.message import ToolCall
from stages.objection import Objection, Placeholder
from stages.policy.placeholder_values import placeholder_arguments
from stages.policy.rules import Rules
from stages.state import State
from stages.verdict import Guard, Verdict


def no_placeholders(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""
    tools = {tool.name: tool for tool in rules.tools}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return [
            Objection(call=call, wrong=Placeholder(arguments=found, again=not unknown_outcome(tool, state.ledger)))
            for call in calls
            if (tool := tools.get(call.name)) and (found := placeholder_arguments(call, tools, state))
        ]

    return guard
