"""Batch selection: which calls of a reply run now, and which wait for the results of others."""

from collections.abc import Mapping

from stages import nudges
from stages.arithmetic import calculation_problems
from stages.candidates import placeholder_arguments
from stages.message import ToolCall
from stages.rules import BatchPolicy, Rules, missing_prerequisites, pending
from stages.schema.canonical_json import canonical
from stages.seen import ungrounded_values
from stages.state import State
from stages.tool import ToolSpec


def _policy_of(rules: Rules, state: State) -> BatchPolicy:
    """The workflow's policy; `auto` keeps the first call of a reply whose tools were in the prompt."""
    if rules.calls.batch != "auto":
        return rules.calls.batch
    return "first" if state.asked.mode == "prompted" else "all"


def kept_calls(rules: Rules, state: State, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], str]:
    """The calls of a reply that run now, each once, and a note to the model about the others; empty if all run."""
    if len(calls) == 1:
        return calls, ""
    policy = _policy_of(rules, state)
    if policy == "first":
        return calls[:1], nudges.only_the_first(calls[0].name, [call.name for call in calls[1:]])
    once, again = (calls, ()) if rules.limits.max_repeats is None else _once(rules, calls)
    go, waiting = _independent(rules, state, once) if policy == "independent" else (once, "")
    return go, "\n".join(filter(None, (nudges.made_once(again) if again else "", waiting)))


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


def _independent(rules: Rules, state: State, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], str]:
    tools = {tool.name: tool for tool in rules.tools}
    go: list[ToolCall] = []
    wait: list[ToolCall] = []
    for call in calls:
        (wait if go and _depends(call, tools[call.name], tools, rules, state) else go).append(call)
    notice = nudges.waits([call.name for call in go], [call.name for call in wait]) if wait else ""
    return tuple(go), notice


def _depends(call: ToolCall, tool: ToolSpec, tools: Mapping[str, ToolSpec], rules: Rules, state: State) -> bool:
    """Whether the call depends on the result of an earlier call of the same reply."""
    if tool.effect == "terminal" and pending(rules, state.ledger):
        return True
    if missing_prerequisites(rules, tool, call.arguments, state.ledger) or placeholder_arguments(call, tools, state):
        return True
    if tool.grounded and ungrounded_values(tool, call.arguments, state):
        return True
    return bool(tool.calculated) and bool(calculation_problems(tool, call.arguments, state))
