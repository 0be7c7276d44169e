"""What a run may spend, has spent and has left; shares of a budget for tools that are agents themselves."""

from hypothesis import given
from hypothesis import strategies as st

from stages.budget import charged, share_of, spending, within
from stages.effect import Budget, Price, Spending
from stages.state import Ledger

_amounts = st.integers(0, 1000)
_limits = st.none() | _amounts
_costs = st.none() | st.floats(0, 100)
budgets = st.builds(
    Budget, calls=_amounts, tool_calls=_limits, tokens=_limits, seconds=_costs, cost=_costs, price=st.just(Price())
)
spendings = st.builds(Spending, calls=_amounts, tool_calls=_amounts, tokens=_amounts, cost=st.floats(0, 100))


def _fits(part: float | None, whole: float | None) -> bool:
    """Whether the part is no more than the whole; None is without limit."""
    return whole is None or (part is not None and part <= whole * (1 + 1e-9))


def _times(amount: float | None, count: int) -> float | None:
    return None if amount is None else amount * count


@given(budgets, st.integers(1, 5))
def test_all_shares_together_are_no_more_than_there_is(budget: Budget, among: int) -> None:
    share = share_of(budget, among)
    assert share.calls * among <= max(0, budget.calls - 1)
    assert _fits(_times(share.tokens, among), budget.tokens)
    assert _fits(_times(share.tool_calls, among), budget.tool_calls)
    assert _fits(_times(share.cost, among), budget.cost)
    assert share.seconds == budget.seconds


@given(budgets, budgets)
def test_a_cut_budget_is_within_both(own: Budget, share: Budget) -> None:
    cut = within(own, share)
    for name in ("calls", "tool_calls", "tokens", "seconds", "cost"):
        assert _fits(getattr(cut, name), getattr(own, name))
        assert _fits(getattr(cut, name), getattr(share, name))
    assert cut == within(share, own)


def test_its_own_price_counts_before_that_of_the_share() -> None:
    own, other = Price(prompt=1.0), Price(prompt=2.0)
    assert within(Budget(price=own), Budget(price=other)).price == own
    assert within(Budget(), Budget(price=other)).price == other


@given(budgets, spendings)
def test_what_was_spent_is_gone(budget: Budget, spent: Spending) -> None:
    after = charged(Ledger(budget=budget, tokens_used=5, cost=1.0), spent)
    assert after.budget.calls == max(0, budget.calls - spent.calls)
    assert budget.tokens is None or after.budget.tokens == max(0, budget.tokens - spent.tokens)
    assert budget.tool_calls is None or after.budget.tool_calls == max(0, budget.tool_calls - spent.tool_calls)
    assert budget.cost is None or after.budget.cost == max(0.0, budget.cost - spent.cost)
    assert (after.tokens_used, after.cost) == (5 + spent.tokens, 1.0 + spent.cost)
    assert after.budget.seconds == budget.seconds


@given(spendings, spendings)
def test_what_a_run_took_is_what_is_gone_from_it(spent: Spending, more: Spending) -> None:
    before = Ledger(budget=Budget(calls=5000, tool_calls=5000))
    assert spending(before, charged(before, spent)) == spent
    assert charged(charged(before, spent), more) == charged(before, spent + more)
