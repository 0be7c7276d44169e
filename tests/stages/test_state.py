"""A state: what is said and noted in it, what of its prompt was measured before, and how it looks in a log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.testing import histories
from stages.effect import Price, Request, Send, Usage
from stages.message import Assistant, History, System, User, size
from stages.state import Awaiting, Memo, Prompt, State, Success

HISTORY = (System(text="Do the work."), User(text="Go."))


def shown(known: int, state: State) -> State:
    """The state after a request that showed the first messages of its history."""
    sizes = tuple(map(size, state.history[:known]))
    last = state.history[known - 1] if known else None
    prompt = Prompt(view=state.history[:known], size=sum(sizes), length=known)
    return State(history=state.history, prompts=(prompt,), memo=Memo(last=last))


@pytest.mark.parametrize("strange", ["Done.", ("Done.",)])
def test_what_is_no_message_is_not_said(strange: object) -> None:
    with pytest.raises(TypeError, match=r"say\(\) takes messages, such as User\(text=…\), not "):
        State(history=()).say(strange)  # type: ignore[arg-type]  # that is what is tried


def test_a_guard_asks_what_has_succeeded_by_the_name_of_the_tool() -> None:
    state = State(history=()).note(successes=(Success(name="check_limit", arguments="{}"),))
    assert state.succeeded("check_limit")
    assert not state.succeeded("check")


@given(histories(), st.data())
def test_what_a_request_has_shown_is_not_measured_again_and_the_sum_is_the_same(
    history: History, data: st.DataObject
) -> None:
    state = State(history=history)
    after = shown(data.draw(st.integers(0, len(history))), state)
    sizes = tuple(map(size, history))
    assert after.sizes() == state.sizes() == sizes
    assert after.measure() == state.measure() == sum(sizes)


def test_thoughts_take_room_only_where_they_are_shown_again() -> None:
    state = State(history=(*HISTORY, Assistant(text="a", reasoning="word " * 50)))
    assert state.measure(reasoning=True) > state.measure() + 200


def test_another_history_is_measured_anew() -> None:
    state = shown(2, State(history=HISTORY))
    assert state.known() == 2
    assert state.reshape(HISTORY[:1]).known() == 0
    assert State(history=(HISTORY[0], User(text="Stop.")), prompts=state.prompts, memo=state.memo).known() == 0


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (State(history=()), "State(Ready, turn 0, 0 messages, done: nothing)"),
        (
            State(history=HISTORY * 500, phase=Awaiting(effect=Send(request=Request(), turn=2))).note(
                turn=2, successes=(Success(name="look", arguments="{}"),) * 2
            ),
            "State(Awaiting(Send), turn 2, 1000 messages, done: look)",
        ),
    ],
)
def test_a_log_shows_where_the_run_is(state: State, text: str) -> None:
    assert repr(state) == text


# --- The ledger: what a reply costs

counts = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("price", "cost"),
    [
        (Price(), 0.0),
        (Price(prompt=3.0), 3.0),
        (Price(prompt=3.0, completion=15.0), 10.5),
        (Price(prompt=3.0, completion=15.0, cached=0.3), 8.88),
        (Price(cached=1.0), 0.6),
    ],
)
def test_a_million_prompt_tokens_six_tenths_cached_and_half_a_million_written(price: Price, cost: float) -> None:
    usage = Usage(prompt=1_000_000, completion=500_000, cached=600_000)
    assert price.of(usage) == pytest.approx(cost)


@given(prompt=counts, completion=counts, cached=counts)
def test_no_reply_costs_less_than_nothing_whatever_a_server_says_was_cached(
    prompt: int, completion: int, cached: int
) -> None:
    usage = Usage(prompt=prompt, completion=completion, cached=cached)
    assert 0.0 <= Price(prompt=1.0, completion=1.0, cached=0.1).of(usage) <= (prompt + completion) / 1e6
