"""The stage `enforce` by itself: what becomes of a batch that guards object to, what is told, what is counted."""

import pytest

from stages import enforce
from stages.halt import ToolsFailing
from stages.message import Assistant, Kind, Tool, ToolCall
from stages.objection import Custom, Guard, Objection, Verdict
from stages.rules import Limits, OnViolation
from stages.state import State, Vetted

LOOK = ToolCall(id="call_1", name="look", arguments="{}")
WRITE = ToolCall(id="call_2", name="write", arguments="{}")
NOT_YET, TOO_LATE = Custom(text="Not yet."), Custom(text="Too late.", counter="tool_errors", kind=Kind.STEP_NUDGE)


def against(name: str, *wrong: Custom) -> Guard:
    def guard(_: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return [Objection(call=call, wrong=one) for call in calls if call.name == name for one in wrong]

    return guard


def enforced(*guards: Guard, on_violation: OnViolation = "block_all") -> State:
    batch = State(history=(), phase=Vetted(said=Assistant(text="", calls=(LOOK, WRITE))))
    return enforce(*guards, on_violation=on_violation)(batch).unwrap()


def told(state: State) -> list[tuple[str, str]]:
    """What became of each call: in the history, or in the phase where others run."""
    if isinstance(state.phase, Vetted):
        return [(one.kind, one.text) for one in state.phase.refused]
    return [(m.kind, m.text) for m in state.history if isinstance(m, Tool)]


def test_call_by_call_the_others_run_and_every_guard_is_asked() -> None:
    after = enforced(against("write", TOO_LATE), against("look", NOT_YET), on_violation="block_call")
    assert sorted(text for _, text in told(after)) == ["Not yet.", "Too late."]
    assert (after.ledger.tool_errors, after.ledger.refusals) == (1, 1)
    alone = enforced(against("write", TOO_LATE), on_violation="block_call")
    assert isinstance(alone.phase, Vetted)
    assert told(alone) == [(Kind.STEP_NUDGE, "Too late.")]


def test_several_objections_to_a_call_are_all_told_and_each_count_grows_once() -> None:
    after = enforced(against("write", NOT_YET, TOO_LATE, NOT_YET))
    assert told(after)[1][1] == "Not yet.\nToo late.\nNot yet."
    assert (after.ledger.tool_errors, after.ledger.refusals) == (1, 1)


@pytest.mark.parametrize("verdict", [None, [NOT_YET], [Objection(wrong=NOT_YET)]])
def test_what_is_no_verdict_is_the_guards_mistake(verdict: Verdict) -> None:
    with pytest.raises(TypeError, match=r"^the guard test_.* (returned|objected)"):
        enforced(lambda _state, _calls: verdict)


def test_objections_that_count_as_tool_errors_end_the_run_past_their_maximum() -> None:
    turn = enforce(against("write", TOO_LATE), limits=Limits(max_tool_errors=1))
    batch = Vetted(said=Assistant(text="", calls=(WRITE,)))
    first = turn(State(history=(), phase=batch)).unwrap()
    assert first.ledger.tool_errors == 1
    halt = turn(first.to(batch)).failure()
    assert halt == ToolsFailing(tool="write", attempts=2, error="Too late.")
