"""Refused ends: tools that end the run, and whose call the user's own check would refuse again as it did before."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from stages.policy.own_checks import of_both, past_calls, problem_with, sees_results
from stages.policy.rules import Rules, legal_tools
from stages.state import State
from stages.tool import ToolSpec


def refused_ends(rules: Rules, state: State) -> Mapping[str, str]:
    """By the name of the tool what its check says now of the call of it that was refused last.

    A check is not asked before the model's first call, nor once a compaction has cut what it would be shown.
    """
    ledger = state.ledger
    if not rules.checks or ledger.compactions:
        return {}
    refused = {made.name: made.arguments for made in ledger.attempts if made.name in rules.checks and not made.answer}
    ends = [tool for tool in legal_tools(rules, state) if tool.effect == "terminal" and tool.name in refused]
    past = past_calls(state) if any(sees_results(rules.checks[tool.name]) for tool in ends) else ()
    asked = ((tool, problem_with(of_both(rules.checks[tool.name]), refused[tool.name], tool, past)) for tool in ends)
    return {tool.name: problem for tool, problem in asked if problem}


def without_refused_ends(rules: Rules, state: State, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The tools without refused ends that take no argument, as no call of them would be accepted; all if none is left.

    With other arguments, a call may be.
    """
    refused = refused_ends(rules, state)
    return tuple(tool for tool in tools if tool.name not in refused or takes_arguments(tool)) or tools


def mending_writes(rules: Rules, state: State) -> tuple[str, ...]:
    """The legal tools that may change what a check goes by: those that rules of order name, else required writes."""
    changing = {change.tool for use in rules.order for change in use.changes}
    legal = [tool for tool in legal_tools(rules, state) if tool.effect == "write"]
    named = tuple(tool.name for tool in legal if tool.name in changing)
    return named or tuple(tool.name for tool in legal if tool.name in rules.required)


class _Parameters(Struct):
    properties: dict[str, Raw] = {}


def takes_arguments(tool: ToolSpec) -> bool:
    """Whether there is any argument that a call of it may have."""
    return bool(msgspec.json.decode(tool.parameters, type=_Parameters).properties)
