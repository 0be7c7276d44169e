"""Saved states: what is read of those that an earlier forge saved."""

import pytest
from hypothesis import given

from forge.testing import states
from stages.effect import Ask, Execute, Request, Send
from stages.message import Assistant, ToolCall, User
from stages.saved import SavedParts, current, load, load_parts, save, save_parts
from stages.state import SCHEMA_VERSION, Awaiting, Batch, Executed, Phase, Prepared, Ready, State

CALL = ToolCall(id="call_000000001", name="pay", arguments="{}")
BATCH = Batch(said=Assistant(calls=(CALL,)))


@pytest.mark.parametrize(
    "phase", [Ready(), Prepared(request=Request()), Awaiting(effect=Send(request=Request(), turn=1))]
)
def test_a_state_of_the_version_before_without_calls_under_way_is_read(phase: Phase) -> None:
    saved = State(history=(User(text="Hi"),), phase=phase, version=2)
    assert current(saved) == State(history=saved.history, phase=phase)
    assert current(saved).version == SCHEMA_VERSION


@pytest.mark.parametrize(
    ("version", "phase", "says"),
    [
        (1, Ready(), "the state is of version 1, and this forge reads version 3"),
        (2, Executed(batch=BATCH), "has tool calls under way"),
        (2, Awaiting(effect=Execute(calls=(CALL,)), batch=BATCH), "go on from it with the forge that saved it"),
        (2, Awaiting(effect=Ask(call=CALL, digest=""), batch=BATCH), "of version 2 and has tool calls under way"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(version: int, phase: Phase, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        current(State(history=(), phase=phase, version=version))


@given(state=states())
def test_in_parts_it_is_the_same_and_one_more_message_is_one_more_part(state: State) -> None:
    parts = save_parts(state)
    assert load_parts(parts) == load(save(state))
    more = save_parts(state.say(User(text="Hi")))
    assert more.messages[:-1] == parts.messages


@pytest.mark.parametrize(
    "parts",
    [
        SavedParts(rest=b"{}", messages=()),
        SavedParts(rest=save(State(history=())), messages=(b"{",)),
        SavedParts(rest=save(State(history=())), messages=(b'{"type":"user"}', b"]" * 300)),
        SavedParts(rest=b"\xff", messages=()),
    ],
)
def test_parts_that_are_none_are_refused_in_words(parts: SavedParts) -> None:
    with pytest.raises(ValueError, match="this is no saved state"):
        load_parts(parts)
