"""What holds for a saved state: it goes on byte for byte as the run that it was saved from."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from returns.result import Result, Success

from stages import compact, enforce, execute, fold, pipeline, send, serialize, validate
from stages.compaction import ContextBudget, TieredCompact
from stages.deliver import deliver
from stages.events import observe
from stages.fold import FailedAttempts, Reasoning
from stages.guards import prerequisites, required_steps
from stages.halt import Halt
from stages.pipeline import Stage
from stages.saved import load, save, without_memory
from stages.state import Awaiting, Done, Memo, State
from stages.view.notes import note_progress, warn_of_calls
from stages.view.summary import Summarize, ask_for_summary
from stages.wire.target import Mode, Target
from tests.property.machine import RULES, outcomes, reachable, states


def turns(mode: Mode, reasoning: Reasoning, attempts: FailedAttempts, tokens: int, *, alternating: bool) -> Stage:
    budget = ContextBudget(tokens=tokens, reasoning=reasoning != "none", recall=True)
    return pipeline(
        ask_for_summary(Summarize(keep_recent=1, shortest=1), TieredCompact(), budget),
        compact(TieredCompact(), budget),
        fold(reasoning, attempts),
        warn_of_calls(RULES, 2),
        note_progress(RULES),
        serialize(RULES, Target(mode=mode, model="model", alternating=alternating)),
        send(RULES),
        validate(RULES, Target(mode=mode)),
        enforce(required_steps(RULES), prerequisites(RULES)),
        execute(RULES),
    )


TURNS = st.builds(
    turns,
    st.sampled_from(("native", "prompted", "constrained")),
    st.sampled_from(("none", "keep-last", "full")),
    st.sampled_from(("keep", "collapse")),
    st.sampled_from((400, 800, 2000)),
    alternating=st.booleans(),
)


def decided(moved: Result[State, Halt]) -> State | Halt:
    """What has to be the same: all but what is remembered only to be fast."""
    match moved:
        case Success(State() as state):
            return replace(state, memo=Memo())
        case _:
            return moved.failure()


FORGETTING: tuple[Callable[[State], State], ...] = (
    lambda state: load(save(state)),
    lambda state: replace(state, memo=Memo()),
    lambda state: state,
)


@given(data=st.data(), turn=TURNS, start=states)
def test_a_run_that_is_loaded_or_forgets_its_memo_goes_on_in_the_same_way(
    data: st.DataObject, turn: Stage, start: State
) -> None:
    """On one side only, before any step: the same requests, ledgers and events follow."""
    state = other = start
    for _ in range(data.draw(st.integers(1, 12))):
        other = data.draw(st.sampled_from(FORGETTING))(other)
        if isinstance(state.phase, Awaiting):
            outcome = data.draw(outcomes(state.phase))
            moved, also = deliver(state, outcome), deliver(other, outcome)
        else:
            moved, also = turn(state), turn(other)
        assert decided(also) == decided(moved)
        if not isinstance(moved, Success) or not isinstance(also, Success):
            return
        assert observe(other, also.unwrap()) == observe(state, moved.unwrap())
        state, other = moved.unwrap(), also.unwrap()
        assert save(other) == save(state)
        if isinstance(state.phase, Done):
            return


@given(reachable())
def test_what_was_loaded_is_saved_as_it_was(state: State) -> None:
    saved = save(state)
    assert save(load(saved)) == saved
    assert without_memory(load(saved)) == without_memory(state)


@pytest.mark.parametrize("saved", [b"", b"{}", b'{"history": 5}', "null", b"[" * 5000, b'{"history":[],"version":99}'])
def test_what_is_no_saved_state_is_refused_in_words(saved: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"^(this is not a saved state: |the state is of version 99)"):
        load(saved)
