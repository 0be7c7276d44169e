"""Prerequisites: no call before the calls that it depends on have succeeded."""

from stages.execution.unknown_outcomes import unknown_outcome
from stages.halt import PrerequisitesSkipped
from stages.message import ToolCall
from stages.objection import NeedsDecision, Objection, PrerequisiteMissing
from stages.policy.escalation import offered_tools
from stages.policy.rules import Rules, denied, missing_by_call, outdated
from stages.state import State
from stages.tool import ToolSpec
from stages.verdict import Guard, Stop, Verdict


def prerequisites(rules: Rules) -> Guard:
    """Object to calls whose prerequisites are unmet, judged before the batch, then stop."""
    dependent = {tool.name: tool for tool in rules.tools if tool.prerequisites}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        ledger = state.ledger
        dependents = [call for call in calls if call.name in dependent]
        if not dependents:
            return []
        missing = missing_by_call(rules, ledger)
        unmet_by_call = [(call, missing(dependent[call.name], call.arguments)) for call in dependents]
        early = [(call, unmet) for call, unmet in unmet_by_call if unmet]
        attempts = ledger.prerequisite_violations + 1
        if early and attempts > rules.max_prerequisite_violations:
            call, unmet = early[0]
            return Stop(halt=PrerequisitesSkipped(tool=call.name, attempts=attempts, missing=unmet))
        return [Objection(call=c, wrong=_wrong(rules, state, dependent[c.name], unmet)) for c, unmet in early]

    return guard


def _wrong(rules: Rules, state: State, tool: ToolSpec, unmet: tuple[str, ...]) -> PrerequisiteMissing | NeedsDecision:
    if barred := tuple(name for name in unmet if (spec := rules.tool(name)) and unknown_outcome(spec, state.ledger)):
        return NeedsDecision(tools=barred, allowed=tuple(other.name for other in offered_tools(rules, state)))
    match = tuple(p.match_arg for p in tool.prerequisites if p.match_arg and p.tool in unmet)
    again, no = outdated(rules, state.ledger, unmet), denied(rules, state.ledger, unmet)
    return PrerequisiteMissing(tools=unmet, match=match, again=again, denied=no)
