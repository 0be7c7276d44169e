"""Unknown outcomes: which tools wait for a decision, what settles them, and keys that make retries safe."""

import pytest
from msgspec.structs import replace

from stages.effect import Ask, Failed, InDoubt, NotRun, Settled, Succeeded
from stages.execution import settled_outcome, unknown_outcomes_after, without_unknown_results
from stages.message import Assistant, ToolCall
from stages.state import Batch, Ledger

PAY = ToolCall(id="call_1", name="pay", arguments='{"sum":5}')
AGAIN = replace(PAY, id="call_2", arguments='{ "sum": 5.0 }')
OTHER = replace(PAY, id="call_2", arguments='{"sum":6}')
LOST = InDoubt(call_id="call_1", reason="The connection broke.")


def batch(*calls: ToolCall, results: tuple[InDoubt | Succeeded | Failed, ...] = ()) -> Batch:
    return Batch(said=Assistant(calls=calls), results=results)


def test_a_success_of_the_same_call_settles_it_and_of_another_does_not() -> None:
    fine = Succeeded(call_id="call_2", text="paid")
    assert unknown_outcomes_after((PAY,), batch(AGAIN), (fine,)) == ()
    assert unknown_outcomes_after((PAY,), batch(OTHER), (fine,)) == (PAY,)
    failed = Failed(call_id="call_2", error="ValueError", message="no")
    assert unknown_outcomes_after((PAY,), batch(AGAIN), (failed,)) == (PAY,)


def test_a_call_that_a_person_is_going_to_be_asked_about_is_open_again() -> None:
    lost = batch(PAY, results=(LOST,))
    assert without_unknown_results(lost, (PAY,)).results == ()
    assert without_unknown_results(lost, ()).results == (LOST,)


@pytest.mark.parametrize(
    ("call", "happened", "answers"),
    [
        (AGAIN, True, [Succeeded]),  # the very same: its result is known, so it answers both
        (OTHER, True, [NotRun]),  # wanted without knowing of the first
        (AGAIN, False, []),
        (OTHER, False, []),
    ],
)
def test_what_becomes_of_the_call_that_was_asked_about(call: ToolCall, answers: list[type], *, happened: bool) -> None:
    ask = Ask(call=call, digest="d", in_doubt=PAY)
    found = Settled(digest="d", happened=happened, result="paid")
    ledger, after = settled_outcome(Ledger(in_doubt=(PAY,)), batch(call), ask, found)
    assert ledger.in_doubt == ()
    assert [type(result) for result in after.results] == answers
    assert [success.name for success in ledger.successes] == (["pay"] if answers == [NotRun] else [])


def test_a_question_about_nothing_cannot_be_settled() -> None:
    with pytest.raises(ValueError, match="no call had an unknown outcome"):
        settled_outcome(Ledger(), batch(PAY), Ask(call=PAY, digest="d"), Settled(digest="d", happened=True))
