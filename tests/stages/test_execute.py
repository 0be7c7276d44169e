"""The stage `execute`: what is run when, when a person is asked, and what is written down of it."""

import pytest
from msgspec import Raw
from msgspec.structs import replace

from stages import execute
from stages.effect import (
    CallResult,
    Failed,
    NotRun,
    Succeeded,
    Unresolved,
)
from stages.message import Assistant, ToolCall
from stages.state import Batch, Executed, State
from tests.property.machine import RULES

LOOK = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
AGAIN = replace(LOOK, id="call_2")
FINISH = ToolCall(id="call_4", name="finish", arguments="{}")
TURN = 2


def came(calls: tuple[ToolCall, ...], *results: CallResult, **ledger: object) -> State:
    batch = Batch(said=Assistant(calls=calls, turn=TURN), results=results)
    return State(history=(), phase=Executed(batch=batch)).note(turn=TURN, **ledger)


def fine(call: ToolCall) -> Succeeded:
    return Succeeded(call_id=call.id, text="7", value=Raw(b"7"))


def test_history_receives_a_batch_only_when_it_is_whole() -> None:
    part = execute(RULES)(came((LOOK, FINISH), fine(LOOK))).unwrap()
    assert (part.history, part.ledger.successes) == ((), ())
    whole = execute(RULES)(came((LOOK, AGAIN), fine(AGAIN), fine(LOOK))).unwrap()
    assert [getattr(message, "call_id", "") for message in whole.history] == ["", LOOK.id, AGAIN.id]
    assert [success.name for success in whole.ledger.successes] == ["look", "look"]


@pytest.mark.parametrize(
    "result",
    [
        fine(LOOK),
        Unresolved(call_id=LOOK.id, message="There is no a."),
        Failed(call_id=LOOK.id, error="ToolFailed", message="no use", counted=False),
        NotRun(call_id=LOOK.id, reason="cancelled"),
    ],
)
def test_what_is_no_mistake_of_the_models_sets_the_counts_back(result: CallResult) -> None:
    state = came((LOOK,), result, tool_errors=2, premature=1, prerequisite_violations=1)
    ledger = execute(RULES)(state).unwrap().ledger
    assert (ledger.tool_errors, ledger.premature, ledger.prerequisite_violations) == (0, 0, 0)
