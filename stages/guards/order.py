"""Order: no call that the workflow's rules of order forbid now (D16)."""

from stages import nudges
from stages.ladder import offered
from stages.message import Kind, ToolCall
from stages.order import obstacle
from stages.rules import Rules, names
from stages.state import State
from stages.verdict import Allow, Block, Correction, Guard, Verdict


def order(rules: Rules) -> Guard:
    """Block a batch with such a call. Counts as a refusal; the budget bounds it."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        done, ahead = names(state.ledger), tuple(call.name for call in calls)
        reasons = [obstacle(rules.order, done, call.name, ahead[:place]) for place, call in enumerate(calls)]
        if not any(reasons):
            return Allow()
        allowed = [tool.name for tool in offered(rules, state)]
        corrections = (
            Correction(call_id=call.id, text=nudges.out_of_order(call.name, reason, allowed))
            if reason
            else Correction(call_id=call.id, text=nudges.beside_a_refused_call(call.name), beside=True)
            for call, reason in zip(calls, reasons, strict=True)
        )
        return Block(kind=Kind.STEP_NUDGE, counter="refusals", corrections=tuple(corrections))

    return guard
