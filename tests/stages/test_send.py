"""The stage `send`: what a model call costs, and when it is not made."""

import pytest
from msgspec.structs import replace

from stages import send
from stages.effect import Ask, Budget, Request, Send
from stages.halt import BudgetSpent, Halt, Spent
from stages.message import ToolCall
from stages.rules import Calls, InDoubtPolicy
from stages.state import Awaiting, Prepared, State, Success
from tests.property.machine import RULES

REQUEST = Request(messages=())
WRITE = ToolCall(id="call_000000001", name="write", arguments='{"text":"a"}')


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
    ],
)
def test_nothing_is_sent_once_a_budget_is_spent(budget: Budget, what: Spent) -> None:
    done = (Success(name="write", arguments="{}"),)
    expected = BudgetSpent(what=what, turns=7, completed=("write",), pending=("look",))
    assert halted(prepared(budget=budget, turn=7, successes=done)) == expected


@pytest.mark.parametrize(("policy", "effect"), [("report", Send), ("ask", Ask)])
def test_a_call_that_the_run_can_do_without_is_asked_about_only_by_policy(policy: InDoubtPolicy, effect: type) -> None:
    rules = replace(RULES, calls=Calls(in_doubt=policy))
    after = send(rules)(prepared(in_doubt=(WRITE,), ids=1)).unwrap()
    assert isinstance(after.phase, Awaiting)
    assert isinstance(after.phase.effect, effect)
