"""Corrected calls: what goes back to the server is a history that every server accepts."""

import pytest

from stages.effect import Refused
from stages.message import Assistant, Kind, Tool, ToolCall, User
from stages.reading.corrections import corrected_calls
from stages.reading.replies import Reading
from stages.wire.valid import valid_history

READING = Reading(said=Assistant(text="So:", reasoning="Hm."))


def corrected(*calls: ToolCall) -> tuple[object, ...]:
    answers = tuple(Refused(call_id=call.id, text=f"{call.name} is wrong.") for call in calls)
    history = corrected_calls(READING, calls, answers, 3)
    assert valid_history(history) == history
    return history


def test_calls_that_a_server_takes_back_are_answered_one_by_one() -> None:
    calls = (
        ToolCall(id="call_1", name="look", arguments='{"what":1}'),
        ToolCall(id="call_2", name="lok", arguments="{}"),
    )
    said, one, other = corrected(*calls)
    assert said == Assistant(text="So:", reasoning="Hm.", calls=calls, turn=3)
    assert one == Tool(call_id="call_1", name="look", text="look is wrong.", kind=Kind.RETRY_NUDGE, turn=3)
    assert isinstance(other, Tool)


@pytest.mark.parametrize(
    "damaged",
    [
        ToolCall(id="call_2", name="look", arguments='{"what"'),
        ToolCall(id="call_2", name="look", arguments="[]"),
        ToolCall(id="call_2", name="look up!", arguments="{}"),
        ToolCall(id="call_2", name="", arguments="{}"),
    ],
)
def test_one_that_a_server_would_refuse_makes_text_of_them_all(damaged: ToolCall) -> None:
    fine = ToolCall(id="call_1", name="look", arguments='{"what":"a"}')
    said, nudge = corrected(fine, damaged)
    assert said == Assistant(
        text=f'So:\nlook({{"what":"a"}})\n{damaged.name}({damaged.arguments})', reasoning="Hm.", turn=3
    )
    assert nudge == User(text=f"look is wrong.\n{damaged.name} is wrong.", kind=Kind.RETRY_NUDGE, turn=3)


def test_of_endless_arguments_only_the_beginning_goes_back() -> None:
    said, _ = corrected(ToolCall(id="call_1", name="look", arguments="x" * 100_000))
    assert isinstance(said, Assistant)
    assert len(said.text) < 2_100
