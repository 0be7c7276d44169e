"""Completion: no end of the run with arguments that the user's own check refuses."""

from collections.abc import Callable, Mapping

import msgspec

from stages.grounding.calculated_arguments import with_results
from stages.message import ToolCall
from stages.objection import Incomplete, Objection
from stages.state import State
from stages.tool import ToolSpec
from stages.verdict import Guard, Verdict

CompletionCheck = Callable[[dict[str, object]], str | None]
"""A pure function of a call's arguments: what is wrong with them, a sentence for the model; None: nothing."""


def completion(checks: Mapping[str, CompletionCheck], tools: tuple[ToolSpec, ...] = ()) -> Guard:
    """Object to calls of these tools whose arguments their checks refuse. Counts as a refusal.

    What `tools` says is calculated, the check is given the result of.
    """
    calculating = {tool.name: tool for tool in tools if tool.calculated}

    def guard(_: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return [
            Objection(call=call, wrong=Incomplete(problem=problem))
            for call in calls
            if (problem := _checked(checks, call, calculating.get(call.name)))
        ]

    return guard


def _checked(checks: Mapping[str, CompletionCheck], call: ToolCall, calculating: ToolSpec | None) -> str | None:
    check = checks.get(call.name)
    if check is None:
        return None
    try:
        arguments = with_results(call.arguments, calculating) if calculating else call.arguments
    except ValueError as error:
        return f"{error}."
    return check(msgspec.json.decode(arguments, type=dict[str, object]))
