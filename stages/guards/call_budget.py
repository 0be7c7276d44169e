"""Tool calls: no more of them in a run than its budget has."""

from stages.halt import BudgetSpent
from stages.message import ToolCall
from stages.policy.rules import Rules, completed, pending
from stages.state import State
from stages.verdict import Guard, Stop, Verdict


def tool_calls(rules: Rules) -> Guard:
    """Stop a run whose reply has more calls than `Budget.tool_calls` leaves: none of them is run."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        ledger = state.ledger
        left = ledger.budget.tool_calls
        if left is None or len(calls) <= left:
            return []
        steps = pending(rules, ledger)
        return Stop(halt=BudgetSpent(what="tool calls", turns=ledger.turn, completed=completed(ledger), pending=steps))

    return guard
