"""Order: no call that the workflow's rules of order forbid now."""

from stages import nudges
from stages.message import Kind, ToolCall
from stages.policy.escalation import offered_tools
from stages.policy.order import obstacle
from stages.policy.rules import Rules, succeeded_names
from stages.state import State
from stages.verdict import Allow, Block, Correction, Guard, Verdict


def order(rules: Rules) -> Guard:
    """Block a batch with such a call. Counts as a refusal; the budget bounds it."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        reasons = _reasons(rules, succeeded_names(state.ledger), calls)
        if not reasons:
            return Allow()
        allowed = [tool.name for tool in offered_tools(rules, state)]
        corrections = (
            Correction(call_id=call.id, text=nudges.out_of_order(call.name, reason, allowed))
            if (reason := reasons.get(call.id))
            else Correction(call_id=call.id, text=nudges.beside_a_refused_call(call.name), beside=True)
            for call in calls
        )
        return Block(kind=Kind.STEP_NUDGE, counter="refusals", corrections=tuple(corrections))

    return guard


def _reasons(rules: Rules, done: tuple[str, ...], calls: tuple[ToolCall, ...]) -> dict[str, str]:
    """What is wrong with calls of a reply, by id, in the order in which they would run: what ends the run comes last.

    A call that is refused does not run, so none after it depends on it.
    """
    ahead: tuple[str, ...] = ()
    found: dict[str, str] = {}
    for call in sorted(calls, key=lambda call: call.name in rules.terminal):
        if reason := obstacle(rules.order, done, call.name, ahead):
            found[call.id] = reason
        else:
            ahead = (*ahead, call.name)
    return found
