"""Completion: no call that the user's own check refuses, by its arguments and by what was found out."""

from collections.abc import Mapping

from stages.message import ToolCall
from stages.objection import Incomplete, Objection
from stages.policy.own_checks import CompletionCheck, of_both, past_calls, problem_with, sees_results
from stages.state import State
from stages.tool import ToolSpec
from stages.verdict import Guard, Verdict


def completion(checks: Mapping[str, CompletionCheck], tools: tuple[ToolSpec, ...] = ()) -> Guard:
    """Object to calls of these tools that their checks refuse. Counts as a refusal.

    What `tools` says is calculated, the check is given the result of. Raises TypeError for a check of other parameters.
    """
    calculating = {tool.name: tool for tool in tools if tool.calculated}
    both = {name: of_both(check) for name, check in checks.items()}
    wanted = {name for name, check in checks.items() if sees_results(check)}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        checked = [call for call in calls if call.name in both]
        past = past_calls(state) if any(call.name in wanted for call in checked) else ()
        problems = ((c, problem_with(both[c.name], c.arguments, calculating.get(c.name), past)) for c in checked)
        return [Objection(call=call, wrong=Incomplete(problem=problem)) for call, problem in problems if problem]

    return guard
