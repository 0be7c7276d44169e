"""Phases: what goes over from one to the next."""

from stages.effect import Refused
from stages.message import Assistant, ToolCall
from stages.state import Batch, Vetted

CALLS = tuple(ToolCall(id=f"call_{n}", name="look", arguments="{}") for n in (1, 2))


def test_calls_begin_to_be_executed_with_the_refused_ones_answered() -> None:
    refused = (Refused(call_id="call_1", text="Not yet."),)
    vetted = Vetted(said=Assistant(text="So:", calls=CALLS), notice="cut", refused=refused, allowed=True)
    assert vetted.batch == Batch(said=vetted.said, results=refused, notice="cut")
    assert vetted.calls == vetted.batch.calls == CALLS


def test_a_batch_of_which_nothing_is_said_is_empty_and_nobody_has_approved_anything() -> None:
    assert (Batch().calls, Batch().results, Batch().approved) == ((), (), ())


def test_calls_are_not_allowed_until_the_guards_were_asked() -> None:
    assert not Vetted(said=Assistant(calls=CALLS)).allowed
