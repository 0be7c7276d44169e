"""The stage `send`: what a model call costs, and when it is not made."""

import pytest
from msgspec.structs import replace

from stages import send
from stages.effect import Ask, Budget, Request, Send
from stages.execution import call_digest
from stages.halt import BudgetSpent, DeadEnd, Halt, OutcomeUnknown, Spent
from stages.message import ToolCall
from stages.rules import Calls, InDoubtPolicy, Use
from stages.state import Awaiting, Prepared, State, Success
from tests.property.machine import RULES

REQUEST = Request(messages=())
FINISH = ToolCall(id="call_000000001", name="finish", arguments="{}")
WRITE = ToolCall(id="call_000000001", name="write", arguments='{"text":"a"}')


def prepared(**ledger: object) -> State:
    return State(history=(), phase=Prepared(request=REQUEST)).note(**ledger)


def halted(state: State) -> Halt:
    return send(RULES)(state).failure()


def test_a_call_is_paid_for_before_it_is_made() -> None:
    after = send(RULES)(prepared(turn=4, budget=Budget(calls=3))).unwrap()
    assert after.phase == Awaiting(effect=Send(request=REQUEST, turn=5))
    assert (after.ledger.turn, after.ledger.budget.calls) == (5, 2)


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


def test_the_last_call_of_a_budget_is_still_made() -> None:
    assert send(RULES)(prepared(budget=Budget(calls=1, tokens=1, cost=0.01, seconds=0.1))).unwrap().ledger.turn == 1


def test_a_model_is_not_asked_where_no_tool_may_be_called() -> None:
    rules = replace(RULES, required=(), order=(Use(tool="look", at_most=1), Use(tool="finish", after=("write",))))
    stuck = replace(rules, tools=tuple(tool for tool in rules.tools if tool.name != "write"))
    done = (Success(name="look", arguments="{}"),)
    assert send(stuck)(prepared(successes=done)).failure() == DeadEnd(completed=("look",), pending=())
    assert isinstance(send(rules)(prepared(successes=done)).unwrap().phase, Awaiting)


def test_a_person_is_asked_first_about_a_call_that_the_run_cannot_do_without() -> None:
    after = send(RULES)(prepared(in_doubt=(FINISH,), ids=1, turn=1)).unwrap()
    again = replace(FINISH, id="call_000000002")
    assert isinstance(after.phase, Awaiting)
    assert after.phase.effect == Ask(call=again, digest=call_digest(FINISH), in_doubt=FINISH)
    assert after.phase.batch.calls == (again,)
    assert after.ledger.turn == 1, "the model was not called"


def test_who_leaves_that_open_ends_the_run() -> None:
    state = prepared(in_doubt=(FINISH,), rejected=(call_digest(FINISH),))
    assert halted(state) == OutcomeUnknown(tool="finish", arguments="{}", call_id=FINISH.id)


@pytest.mark.parametrize(("policy", "effect"), [("report", Send), ("ask", Ask)])
def test_a_call_that_the_run_can_do_without_is_asked_about_only_by_policy(policy: InDoubtPolicy, effect: type) -> None:
    rules = replace(RULES, calls=Calls(in_doubt=policy))
    after = send(rules)(prepared(in_doubt=(WRITE,), ids=1)).unwrap()
    assert isinstance(after.phase, Awaiting)
    assert isinstance(after.phase.effect, effect)
