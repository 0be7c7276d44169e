"""Placeholders: no call with an argument that only stands for a value: `<customer_id>`, the tool's own words."""

from stages.execution.unknown_outcomes import unknown_outcome
from stages.message import ToolCall
from stages.objection import Objection, Placeholder
from stages.policy.placeholder_values import described_arguments, example_arguments, placeholder_arguments
from stages.policy.rules import Rules
from stages.state import State
from stages.tool import ToolSpec
from stages.verdict import Guard, Verdict


def no_placeholders(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""
    tools = {tool.name: tool for tool in rules.tools}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        known = [(call, tools[call.name]) for call in calls if call.name in tools]
        return [Objection(call=call, wrong=wrong) for call, tool in known if (wrong := judged(call, tool, state))]

    def judged(call: ToolCall, tool: ToolSpec, state: State) -> Placeholder | None:
        again = not unknown_outcome(tool, state.ledger)
        if found := placeholder_arguments(call, tools, state):
            return Placeholder(arguments=found, again=again)
        if copied := described_arguments(call, tool, state):
            return Placeholder(arguments=copied, again=again, copied="description")
        examples = example_arguments(call, tools, state)
        return Placeholder(arguments=examples, again=again, copied="example") if examples else None

    return guard
