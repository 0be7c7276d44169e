"""Budget: what a run has spent, what is left of its budget, and the Halt that ends it."""

from typing import TypeVar

from msgspec.structs import replace

from stages.effect import Budget, Price, Spending
from stages.halt import BudgetSpent, Spent
from stages.rules import Rules, completed, pending
from stages.state import Ledger, State

_N = TypeVar("_N", int, float)


def left_of(budget: Budget, spent: Spending, seconds: float = 0.0) -> Budget:
    """What is left of the budget; never less than nothing."""
    if not spent.calls and budget.tool_calls is budget.tokens is budget.seconds is budget.cost is None:
        return budget  # nothing that was spent is limited; replacing checks the fields, which takes microseconds
    return replace(
        budget,
        calls=_less(budget.calls, spent.calls),
        tool_calls=_less(budget.tool_calls, spent.tool_calls),
        tokens=_less(budget.tokens, spent.tokens),
        seconds=_less(budget.seconds, seconds),
        cost=_less(budget.cost, spent.cost),
    )


def _less(limit: _N | None, used: _N) -> _N | None:
    return limit - min(limit, used) if limit is not None and used else limit


def charged(ledger: Ledger, spent: Spending, seconds: float = 0.0) -> Ledger:
    """The ledger after this was spent, by the run itself or by its tools."""
    budget = left_of(ledger.budget, spent, seconds)
    return replace(ledger, budget=budget, tokens_used=ledger.tokens_used + spent.tokens, cost=ledger.cost + spent.cost)


def over_budget(rules: Rules, ledger: Ledger, tool_calls: int | None = None) -> BudgetSpent | None:
    """The end of a run that cannot afford these tool calls; without any, another model call. None if it can."""
    budget = ledger.budget
    what: Spent
    if tool_calls is not None:
        if budget.tool_calls is None or tool_calls <= budget.tool_calls:
            return None
        what = "tool calls"
    elif budget.calls <= 0:
        what = "calls"
    elif budget.tokens is not None and budget.tokens <= 0:
        what = "tokens"
    elif budget.cost is not None and budget.cost <= 0:
        what = "cost"
    elif out_of_time(budget):
        what = "seconds"
    else:
        return None
    return BudgetSpent(what=what, turns=ledger.turn, completed=completed(ledger), pending=pending(rules, ledger))


def out_of_time(budget: Budget) -> bool:
    """Whether the seconds are spent: not even a tool call may start."""
    return budget.seconds is not None and budget.seconds <= 0


def with_budget(state: State, budget: Budget) -> State:
    """The state with a new budget; mistakes and failed summaries are counted from zero again."""
    return state.note(
        budget=budget, retries=0, tool_errors=0, premature=0, prerequisite_violations=0, summary_failures=()
    )


def spending(before: Ledger, after: Ledger) -> Spending:
    """What a run spent between two of its ledgers."""
    first, left = before.budget, after.budget
    return Spending(
        calls=max(0, first.calls - left.calls),
        tool_calls=max(0, (first.tool_calls or 0) - (left.tool_calls or 0)),
        tokens=max(0, after.tokens_used - before.tokens_used),
        cost=max(0.0, after.cost - before.cost),
    )


# Delegation: what a tool that is an agent itself may spend of its caller's budget.


def share_of(budget: Budget, among: int = 1) -> Budget:
    """What each of `among` concurrent calls may spend of the budget: an equal part, but all of the seconds.

    One model call is kept back, so that the run can report what came of them.
    """
    return replace(
        budget,
        calls=max(0, budget.calls - 1) // among,
        tool_calls=None if budget.tool_calls is None else max(0, budget.tool_calls - among) // among,
        tokens=None if budget.tokens is None else budget.tokens // among,
        cost=None if budget.cost is None else budget.cost / among,
    )


def within(budget: Budget, share: Budget) -> Budget:
    """The budget, cut to the share. The price is its own, or that of the share if it has none."""
    return Budget(
        calls=min(budget.calls, share.calls),
        tool_calls=_least(budget.tool_calls, share.tool_calls),
        tokens=_least(budget.tokens, share.tokens),
        seconds=_least(budget.seconds, share.seconds),
        cost=_least(budget.cost, share.cost),
        price=share.price if budget.price == Price() else budget.price,
    )


def _least(one: _N | None, other: _N | None) -> _N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
