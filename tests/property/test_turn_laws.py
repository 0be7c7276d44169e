"""What holds for a turn, whatever the model says and whatever state the run is in."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from returns.result import Failure

from forge.testing import assert_answered, histories
from stages import serialize
from stages.deliver import deliver, interrupt
from stages.effect import Execute
from stages.message import Assistant, History, Kind, System, Tool, User
from stages.pipeline import Acting
from stages.state import (
    STAGES,
    Awaiting,
    Done,
    Folded,
    Prepared,
    Ready,
    State,
)
from stages.wire.target import Mode, Target
from tests.property.machine import RULES, TURN, outcomes, reachable, stages_in_order

TURN_STAGES = dict(zip(STAGES, stages_in_order(), strict=True))


@given(reachable())
def test_a_turn_ends_in_awaiting_ready_done_or_a_halt(state: State) -> None:
    moved = TURN(state)
    if not isinstance(moved, Failure):
        assert isinstance(moved.unwrap().phase, Awaiting | Ready | Done)


@given(reachable())
def test_a_stage_hands_on_the_states_of_other_phases_untouched(state: State) -> None:
    for name, stage in TURN_STAGES.items():
        if not isinstance(state.phase, STAGES[name].phases):
            assert stage(state).unwrap() is state, name


@given(reachable())
def test_the_history_is_always_valid_for_a_server(state: State) -> None:
    assert_answered(state.history)
    assert not any(isinstance(m, System) for m in state.history[1:])
    for message in state.history:
        if isinstance(message, Assistant):
            for call in message.calls:
                msgspec.json.decode(call.arguments, type=dict[str, msgspec.Raw])


NOTE: History = (User(text="Two replies are left.", kind=Kind.ITERATION_WARNING),)
NOTES = st.tuples(*(st.sampled_from(((), NOTE)) for _ in range(4)))


@pytest.mark.parametrize("mode", ["native", "prompted", "constrained"])
@given(before=histories(max_turns=3), added=histories(max_turns=3), again=histories(max_turns=2), said=NOTES)
def test_a_request_that_extends_the_last_one_is_as_if_written_anew(
    mode: Mode, before: History, added: History, again: History, said: tuple[History, ...]
) -> None:
    """Cost per turn is flat because the last request is extended; the bytes may not tell."""
    write = serialize(RULES, Target(mode=mode, model="model"))

    def body(state: State, notes: History) -> tuple[bytes, int, State]:
        written = write(state.to(Folded(view=state.history, notes=notes))).unwrap()
        assert isinstance(written.phase, Prepared)
        return written.phase.request.body, written.ledger.prompt_size, written

    state = State(history=before)
    opened = isinstance(added[0], System) + 1
    parts = (added[opened:], tuple(m for m in again if not isinstance(m, System)), ())
    for more, notes, later in zip(parts, said[:3], said[1:], strict=True):
        _, _, written = body(state, notes)
        state = replace(written, history=written.history + more)
        assert body(state, later)[:2] == body(State(history=state.history), later)[:2]


@given(reachable())
def test_an_interrupted_run_leaves_no_call_without_an_answer(state: State) -> None:
    stopped = interrupt(state)
    assert isinstance(stopped.phase, Ready)
    assert_answered(stopped.history)
    if isinstance(state.phase, Awaiting):
        asked = {call.id for call in state.phase.batch.calls}
        assert asked <= {m.call_id for m in stopped.history if isinstance(m, Tool)}


@given(data=st.data())
def test_a_run_terminates(data: st.DataObject) -> None:
    """Each model call is paid for, so the steps are bounded whatever the model says."""
    state = data.draw(reachable())
    calls = state.ledger.budget.calls
    for _ in range(40 * (calls + 1)):
        moved = TURN(state)
        if isinstance(moved, Failure):
            return
        state = moved.unwrap()
        assert state.ledger.budget.calls <= calls
        if isinstance(state.phase, Done):
            return
        if isinstance(state.phase, Awaiting):
            state = deliver(state, data.draw(outcomes(state.phase))).unwrap()
    pytest.fail("the run did not end")


@given(reachable())
def test_nothing_runs_that_is_not_legal(state: State) -> None:
    """The terminal tool never runs before its steps, what needs a yes never without one."""
    if isinstance(state.phase, Awaiting) and state.phase.effect.__class__.__name__ == "Execute":
        assert isinstance(state.phase.effect, Execute)
        for call in state.phase.effect.calls:
            unsure = any(known.name == call.name for known in state.ledger.in_doubt) and call.name != "look"
            assert not (unsure or call.name == "write") or call.id in state.phase.batch.approved
        for call in state.phase.batch.calls:
            tool = RULES.tool(call.name)
            assert tool is not None
            done = {success.name for success in state.ledger.successes}
            if tool.effect == "terminal":
                assert {*RULES.required} <= done


def test_the_table_of_phases_says_where_the_stages_act() -> None:
    acting = {name: set(stage.phases) for name, stage in TURN_STAGES.items() if isinstance(stage, Acting)}
    assert acting == {name: set(acts.phases) for name, acts in STAGES.items()}
