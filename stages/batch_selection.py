"""Batch selection: which calls of a reply run now, and which wait for the results of others."""

from collections.abc import Mapping

from stages import nudges
from stages.arithmetic import calculation_problems
from stages.message import ToolCall
from stages.placeholders import placeholder_arguments
from stages.rules import Rules, missing_prerequisites, pending
from stages.schema.canonical_json import canonical
from stages.seen import ungrounded_values
from stages.state import State
from stages.tool import ToolSpec


def kept_calls(rules: Rules, state: State, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], str]:
    """Which of several calls of a reply run now, and a note to the model about the others; empty if all run."""
    policy = rules.calls.batch
    if policy == "first" or (policy == "auto" and state.asked.mode == "prompted"):
        return calls[:1], nudges.only_the_first(calls[0].name, [call.name for call in calls[1:]])
    once, again = (calls, ()) if rules.limits.max_repeats is None else _once(rules, calls)
    note = nudges.made_once(again) if again else ""
    if policy != "independent":
        return once, note
    tools = {tool.name: tool for tool in rules.tools}
    run: list[ToolCall] = []
    wait: list[ToolCall] = []
    for call in once:
        (wait if run and _depends(call, tools, rules, state) else run).append(call)
    waiting = nudges.waits([call.name for call in run], [call.name for call in wait]) if wait else ""
    return tuple(run), "\n".join(filter(None, (note, waiting)))


def _once(rules: Rules, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], tuple[str, ...]]:
    """The calls without repeats, and the names of the repeated tools.

    Within one reply the model has not seen a result yet, so it cannot want the same call again, except of a
    `repeatable` tool.
    """
    free = {tool.name for tool in rules.tools if tool.repeatable}
    first: dict[tuple[str, str], ToolCall] = {}
    for call in calls:
        key = (call.name, call.id if call.name in free else canonical(call.arguments))
        first.setdefault(key, call)
    kept = tuple(first.values())
    made = {call.id for call in kept}
    return kept, tuple(dict.fromkeys(call.name for call in calls if call.id not in made))


def _depends(call: ToolCall, tools: Mapping[str, ToolSpec], rules: Rules, state: State) -> bool:
    """Whether the call is wrong now and may be right once an earlier call of the reply has returned."""
    tool = tools[call.name]
    if tool.effect == "terminal" and pending(rules, state.ledger):
        return True
    if missing_prerequisites(rules, tool, call.arguments, state.ledger) or placeholder_arguments(call, tools, state):
        return True
    if tool.grounded and ungrounded_values(tool, call.arguments, state):
        return True
    return bool(tool.calculated) and bool(calculation_problems(tool, call.arguments, state))
