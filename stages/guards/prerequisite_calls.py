"""Prerequisites: no call before the calls that it depends on have succeeded."""

from stages import nudges
from stages.execution.unknown_outcomes import in_doubt
from stages.halt import PrerequisitesSkipped
from stages.message import Kind, ToolCall
from stages.policy.escalation import offered_tools
from stages.policy.rules import Rules, missing_prerequisites
from stages.state import State
from stages.verdict import Allow, Block, Correction, Guard, Stop, Verdict


def prerequisites(rules: Rules) -> Guard:
    """Block a batch with a call whose prerequisites are unmet, judged before the batch, then stop."""
    dependent = {tool.name: tool for tool in rules.tools if tool.prerequisites}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        unmet = {
            call.id: missing_prerequisites(dependent[call.name], call.arguments, state.ledger)
            for call in calls
            if call.name in dependent
        }
        early = [call for call in calls if unmet.get(call.id)]
        if not early:
            return Allow()
        attempts = state.ledger.prerequisite_violations + 1
        if attempts > rules.max_prerequisite_violations:
            first = early[0]
            return Stop(halt=PrerequisitesSkipped(tool=first.name, attempts=attempts, missing=unmet[first.id]))
        return Block(
            kind=Kind.PREREQUISITE_NUDGE,
            counter="prerequisite_violations",
            corrections=tuple(_correction(rules, state, call, unmet.get(call.id, ())) for call in calls),
        )

    return guard


def _correction(rules: Rules, state: State, call: ToolCall, unmet: tuple[str, ...]) -> Correction:
    tool = rules.tool(call.name)
    if not unmet or tool is None:
        return Correction(call_id=call.id, text=nudges.beside_a_refused_call(call.name), beside=True)
    if barred := [name for name in unmet if (spec := rules.tool(name)) and in_doubt(spec, state.ledger)]:
        others = [other.name for other in offered_tools(rules, state)]
        return Correction(call_id=call.id, text=nudges.needs_a_decision(call.name, barred, others))
    match = [p.match_arg for p in tool.prerequisites if p.match_arg and p.tool in unmet]
    return Correction(call_id=call.id, text=nudges.prerequisite(call.name, unmet, match))
