"""The limit of tool calls: a reply is run whole or not at all."""

import pytest

from stages.effect import Budget
from stages.guards import tool_calls
from stages.halt import BudgetSpent
from stages.message import ToolCall
from stages.objection import Stop
from stages.state import Ledger, State, Success
from tests.property.machine import RULES

CALLS = tuple(ToolCall(id=f"call_{n}", name="look", arguments="{}") for n in range(3))


@pytest.mark.parametrize("left", [None, 3, 4])
def test_as_many_calls_as_are_left_may_run(left: int | None) -> None:
    assert tool_calls(RULES)(State(history=(), ledger=Ledger(budget=Budget(tool_calls=left))), CALLS) == []


@pytest.mark.parametrize("left", [0, 2])
def test_one_more_ends_the_run_before_any_of_them(left: int) -> None:
    done = (Success(name="look", arguments="{}"),)
    state = State(history=(), ledger=Ledger(budget=Budget(tool_calls=left), turn=4, successes=done))
    halt = BudgetSpent(what="tool calls", turns=4, completed=("look",), pending=())
    assert tool_calls(RULES)(state, CALLS) == Stop(halt=halt)
