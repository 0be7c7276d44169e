"""Order: no call that the workflow's rules of order forbid now, and none of a tool that it withholds."""

from stages.message import ToolCall
from stages.objection import Objection, OutOfOrder
from stages.policy.escalation import offered_tools
from stages.policy.order import obstacle
from stages.policy.rules import Rules, succeeded_names
from stages.state import State
from stages.verdict import Guard, Verdict

_WITHHELD = "it changes something, and no step of this task needs it"


def order(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        reasons = _reasons(rules, succeeded_names(state.ledger), calls)
        if not reasons:
            return []
        allowed = tuple(tool.name for tool in offered_tools(rules, state))
        return [
            Objection(call=call, wrong=OutOfOrder(reason=reasons[call.id], allowed=allowed))
            for call in calls
            if call.id in reasons
        ]

    return guard


def _reasons(rules: Rules, done: tuple[str, ...], calls: tuple[ToolCall, ...]) -> dict[str, str]:
    """What is wrong with calls of a reply, by id, in the order in which they would run: what ends the run comes last.

    A call that is refused does not run, so none after it depends on it.
    """
    ahead: tuple[str, ...] = ()
    found: dict[str, str] = {}
    for call in sorted(calls, key=lambda call: call.name in rules.terminal):
        withheld = _WITHHELD if call.name in rules.withheld else None
        if reason := withheld or obstacle(rules.order, done, call.name, ahead):
            found[call.id] = reason
        else:
            ahead = (*ahead, call.name)
    return found
