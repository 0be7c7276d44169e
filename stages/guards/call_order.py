"""Order: no call that the workflow's rules of order forbid now, and none of a tool that it withholds."""

from msgspec.structs import replace

from stages.message import ToolCall
from stages.objection import Objection, OutOfOrder
from stages.policy.escalation import offered_tools
from stages.policy.order import current_successes, obstacle
from stages.policy.rules import Rules, missing_prerequisites, pending, still_withheld, succeeded_names
from stages.state import Ledger, State
from stages.verdict import Guard, Verdict

_WITHHELD = "it changes something, and no step of this task needs it"


def order(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        reasons = _reasons(rules, state, calls)
        if not reasons:
            return []
        allowed = tuple(tool.name for tool in offered_tools(rules, state))
        return [
            Objection(call=call, wrong=OutOfOrder(reason=reasons[call.id], allowed=allowed))
            for call in calls
            if call.id in reasons
        ]

    return guard


def _reasons(rules: Rules, state: State, calls: tuple[ToolCall, ...]) -> dict[str, str]:
    """What is wrong with calls of a reply, by id, in the order in which they would run: what ends the run comes last.

    A call that is refused does not run, so none after it depends on it.
    """
    withheld = still_withheld(rules, state)
    ahead: tuple[ToolCall, ...] = ()
    found: dict[str, str] = {}
    for call in sorted(calls, key=lambda call: call.name in rules.terminal):
        if reason := _WITHHELD if call.name in withheld else _reason(rules, state.ledger, call, ahead):
            found[call.id] = reason
        else:
            ahead = (*ahead, call)
    return found


def _reason(rules: Rules, ledger: Ledger, call: ToolCall, ahead: tuple[ToolCall, ...]) -> str | None:
    if not rules.order:
        return None  # a long run is not read for nothing
    left = replace(ledger, successes=current_successes(rules.order, ledger.successes, ahead))
    names = tuple(one.name for one in ahead)
    reason = obstacle(rules.order, succeeded_names(ledger), call.name, names, succeeded_names(left))
    return reason or _outdated(rules, ledger, left, call)


def _outdated(rules: Rules, ledger: Ledger, left: Ledger, call: ToolCall) -> str | None:
    """That the calls ahead of this one in its reply would make steps out of date which it needs.

    `left` is the ledger with the successes that would still count.
    """
    tool = rules.tool(call.name)
    if tool is None or len(left.successes) == len(ledger.successes):
        return None
    lacking = {*missing_prerequisites(rules, tool, call.arguments, left)}
    lacking -= {*missing_prerequisites(rules, tool, call.arguments, ledger)}
    if tool.effect == "terminal":
        lacking |= {*pending(rules, left)} - {*pending(rules, ledger)}
    again = ", ".join(name for name in (one.name for one in rules.tools) if name in lacking)
    return f"a call before it in the same reply makes {again} necessary again" if again else None
