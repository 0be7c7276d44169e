"""Saved states: what is read of those that an earlier forge saved."""

import pytest
from hypothesis import given

from forge.testing import states
from stages.message import User
from stages.saved import SavedParts, current, load, load_parts, save, save_parts
from stages.state import SCHEMA_VERSION, State


def test_a_state_of_another_version_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=f"the state is of version 1, and this forge reads version {SCHEMA_VERSION}"):
        current(State(history=(), version=1))


@pytest.mark.parametrize("rest", ['"history":[{"type":"user"}]', '"history":[],"ledger":{"budget":7}', '"history":[]'])
def test_a_state_whose_fields_were_others_is_refused_by_its_version(rest: str) -> None:
    saved = f'{{{rest},"version":3}}'
    with pytest.raises(ValueError, match="the state is of version 3"):
        load(saved)
    with pytest.raises(ValueError, match="the state is of version 3"):
        load_parts(SavedParts(rest=saved.encode(), messages=(b"{}",)))


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
    with pytest.raises(ValueError, match="this is not a saved state"):
        load_parts(parts)
