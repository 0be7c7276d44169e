"""Delegation: what a run's tools may spend of its budget, and the ledger after they did."""

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from stages.effect import Spending
from stages.ledger import Budget, Ledger, Price

_N = TypeVar("_N", int, float)


def share_of(budget: Budget, among: int = 1) -> Budget:
    """What each of so many concurrent calls may spend of that budget: equal parts; of the seconds, all.

    One model call is kept back, so that the run can say what came of them.
    """
    return replace(
        budget,
        calls=max(0, budget.calls - 1) // among,
        tool_calls=None if budget.tool_calls is None else max(0, budget.tool_calls - among) // among,
        tokens=None if budget.tokens is None else budget.tokens // among,
        cost=None if budget.cost is None else budget.cost / among,
    )


def within(budget: Budget, share: Budget) -> Budget:
    """The budget, cut to the share. Its own price counts; that of the share, where it has none."""
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


def spending(before: Ledger, after: Ledger) -> Spending:
    """What a run took between the two, the earlier of them with the budget that it began with."""
    first, left = before.budget, after.budget
    return Spending(
        calls=max(0, first.calls - left.calls),
        tool_calls=max(0, (first.tool_calls or 0) - (left.tool_calls or 0)),
        tokens=max(0, after.tokens_used - before.tokens_used),
        cost=max(0.0, after.cost - before.cost),
    )


def sum_of(spent: Sequence[Spending]) -> Spending:
    """All of it together."""
    return Spending(
        calls=sum(one.calls for one in spent),
        tool_calls=sum(one.tool_calls for one in spent),
        tokens=sum(one.tokens for one in spent),
        cost=sum(one.cost for one in spent),
    )


def with_spending(ledger: Ledger, spent: Spending) -> Ledger:
    """The ledger once tools have spent so much of its run's budget. Their seconds are those of the calls."""
    if spent == Spending():
        return ledger
    budget = ledger.budget
    left = replace(
        budget,
        calls=max(0, budget.calls - spent.calls),
        tool_calls=None if budget.tool_calls is None else max(0, budget.tool_calls - spent.tool_calls),
        tokens=None if budget.tokens is None else max(0, budget.tokens - spent.tokens),
        cost=None if budget.cost is None else max(0.0, budget.cost - spent.cost),
    )
    return replace(ledger, budget=left, tokens_used=ledger.tokens_used + spent.tokens, cost=ledger.cost + spent.cost)
