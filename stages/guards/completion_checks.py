"""Completion: no end of the run with arguments that the user's own check refuses."""

from collections.abc import Callable, Mapping

import msgspec

from stages import nudges
from stages.grounding.calculated_arguments import with_results
from stages.message import Kind, ToolCall
from stages.state import State
from stages.tool import ToolSpec
from stages.verdict import Allow, Block, Correction, Guard, Verdict

CompletionCheck = Callable[[dict[str, object]], str | None]
"""A pure function of a call's arguments: what is wrong with them, a sentence for the model; None: nothing."""


def completion(checks: Mapping[str, CompletionCheck], tools: tuple[ToolSpec, ...] = ()) -> Guard:
    """Block a batch with a call of one of these tools whose arguments its check refuses. Counts as a refusal.

    What `tools` says is calculated, the check is given the result of.
    """
    calculating = {tool.name: tool for tool in tools if tool.calculated}

    def guard(_: State, calls: tuple[ToolCall, ...]) -> Verdict:
        problems = {call.id: _checked(checks, call, calculating.get(call.name)) for call in calls}
        if not any(problems.values()):
            return Allow()
        corrections = (
            Correction(call_id=call.id, text=nudges.incomplete(call.name, problem))
            if (problem := problems[call.id])
            else Correction(call_id=call.id, text=nudges.beside_a_refused_call(call.name), beside=True)
            for call in calls
        )
        return Block(kind=Kind.RETRY_NUDGE, counter="refusals", corrections=tuple(corrections))

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
