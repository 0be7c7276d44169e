"""Parts of a history: no call without its result, whatever is taken of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from forge.testing import assert_answered, histories, states
from stages.memory import Role, branched, in_turn, last_messages, misplaced, of_roles, title, whole_prefix
from stages.message import Assistant, History, Kind, Message, System, Tool, ToolCall, User
from stages.state import Done, Ready, State

CALL = ToolCall(id="call_000000001", name="look", arguments="{}")
SAID = Assistant(calls=(CALL,), turn=1)
RESULT = Tool(call_id=CALL.id, name="look", text="7", turn=1)


@given(history=histories(), count=st.integers(-1, 30))
def test_the_last_messages_are_the_end_of_the_history_with_their_calls(history: History, count: int) -> None:
    last = last_messages(history, count)
    assert last == history[len(history) - len(last) :]
    assert len(last) >= min(max(0, count), len(history))
    assert_answered(last)
    if len(last) > max(0, count):  # only a call whose results were asked for brings more
        assert isinstance(last[0], Assistant)


@given(history=histories(), count=st.integers(-1, 30))
def test_a_prefix_ends_with_a_whole_exchange(history: History, count: int) -> None:
    first = whole_prefix(history, count)
    assert first == history[: len(first)]
    assert len(first) <= max(0, count)
    assert_answered(first)


@given(history=histories())
def test_each_message_has_one_role(history: History) -> None:
    roles: tuple[Role, ...] = ("system", "user", "assistant", "tool")
    assert of_roles(history, roles) == history
    assert sorted(map(repr, (m for at in range(len(roles)) for m in of_roles(history, roles[at : at + 1])))) == sorted(
        map(repr, history)
    )
    assert all(isinstance(m, Tool) for m in of_roles(history, roles[3:]))


@given(state=states(), count=st.none() | st.integers(0, 10))
def test_a_branch_is_whole_and_at_rest(state: State, count: int | None) -> None:
    branch = branched(state, count)
    assert_answered(branch.history)
    assert isinstance(branch.phase, Ready | Done)
    if count is None:
        assert branch.history[: len(state.history)] == state.history
    else:
        assert len(branch.history) <= count or branch.history == branched(state).history


@pytest.mark.parametrize(
    ("history", "message", "problem"),
    [
        ((), User(text="Hi"), ""),
        ((SAID,), RESULT, ""),
        ((SAID, RESULT), User(text="Thanks"), ""),
        ((), RESULT, "not waiting for one; waiting are: none"),
        ((SAID, RESULT), RESULT, "not waiting"),
        ((SAID,), User(text="Hi"), "look (call_000000001)"),
    ],
)
def test_a_result_follows_its_call_and_nothing_else_does(history: History, message: Message, problem: str) -> None:
    said = misplaced(history, message)
    assert problem in said
    assert bool(said) == bool(problem)


def test_an_added_message_is_in_the_turn_of_the_last_reply_and_a_reply_begins_one() -> None:
    call = Assistant(calls=(CALL,))
    history: History = (System(text="Be kind."),)
    for message in (
        User(text="Hi"),
        call,
        Tool(call_id=CALL.id, name="look", text="7"),
        Assistant(text="7"),
        User(text="?"),
    ):
        history += (in_turn(history, message),)
    assert [m.turn for m in history if not isinstance(m, System)] == [0, 1, 1, 2, 2]
    assert in_turn(history, replace(call, turn=9)) == replace(call, turn=9)


def test_a_title_is_one_short_line_of_the_first_request() -> None:
    note = User(text="fact", kind=Kind.REMEMBERED)
    history = (System(text="Be kind."), note, User(text="Book\n\ta \x00\x1b flight " + "x" * 500), User(text="Later"))
    assert title(history).startswith("Book a  flight xxx")
    assert len(title(history)) < 120
    assert title(()) == ""
