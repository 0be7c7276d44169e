"""The stage `send`: what a model call costs, and when it is not made."""

import pytest

from stages import send
from stages.effect import Budget, Request
from stages.halt import BudgetSpent, Halt, Spent
from stages.state import Prepared, State, Success
from tests.property.machine import RULES

REQUEST = Request(messages=())


def prepared(**ledger: object) -> State:
    return State(history=(), phase=Prepared(request=REQUEST)).note(**ledger)


def halted(state: State) -> Halt:
    return send(RULES)(state).failure()


@pytest.mark.parametrize(
    ("budget", "what"),
    [
        (Budget(calls=0), "calls"),
        (Budget(tokens=0), "tokens"),
        (Budget(cost=0.0), "cost"),
        (Budget(seconds=0.0), "seconds"),
        (Budget(calls=0, seconds=0.0), "calls"),
    ],
)
def test_nothing_is_sent_once_a_budget_is_spent(budget: Budget, what: Spent) -> None:
    done = (Success(name="write", arguments="{}"),)
    expected = BudgetSpent(what=what, turns=7, completed=("write",), pending=("look",))
    assert halted(prepared(budget=budget, turn=7, successes=done)) == expected
