"""Prerequisites: no call before the calls that it depends on have succeeded."""

from stages import nudges
from stages.halt import PrerequisitesSkipped
from stages.message import Kind, ToolCall
from stages.rules import Rules, missing
from stages.state import Ledger, State
from stages.verdict import Allow, Block, Correction, Guard, Stop, Verdict


def prerequisites(rules: Rules) -> Guard:
    """Block a batch with a call whose prerequisites are unmet, judged before the batch (D7), then stop."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        unmet = {call.id: _unmet(rules, call, state.ledger) for call in calls}
        early = [call for call in calls if unmet[call.id]]
        if not early:
            return Allow()
        attempts = state.ledger.prerequisite_violations + 1
        if attempts > rules.max_prerequisite_violations:
            first = early[0]
            return Stop(halt=PrerequisitesSkipped(tool=first.name, attempts=attempts, missing=unmet[first.id]))
        return Block(
            kind=Kind.PREREQUISITE_NUDGE,
            counter="prerequisite_violations",
            corrections=tuple(_correction(rules, call, unmet[call.id]) for call in calls),
        )

    return guard


def _unmet(rules: Rules, call: ToolCall, ledger: Ledger) -> tuple[str, ...]:
    tool = rules.tool(call.name)
    return missing(tool, call.arguments, ledger) if tool else ()


def _correction(rules: Rules, call: ToolCall, unmet: tuple[str, ...]) -> Correction:
    tool = rules.tool(call.name)
    if not unmet or tool is None:
        return Correction(call_id=call.id, text=nudges.beside_a_refused_call(call.name))
    match = [p.match_arg for p in tool.prerequisites if p.match_arg and p.tool in unmet]
    return Correction(call_id=call.id, text=nudges.prerequisite(call.name, unmet, match))
