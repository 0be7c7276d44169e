"""Differences: each place once, by its path; nothing for equal values, however deep or long."""

import pytest
from hypothesis import given
from msgspec import Raw

from forge.journal.replaying import Difference, as_lines, differences
from stages.message import Assistant, System, ToolCall, User
from stages.state import Ledger, State
from tests.property.machine import states


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1, 1, []),
        (1, 1.0, [("", "1", "1.0")]),
        (1, True, [("", "1", "true")]),
        ({"a": None}, {}, [("a", "null", None)]),
        ({}, {"a": None}, [("a", None, "null")]),
        ([1, 2], [1, 2, 3], [("[2]", None, "3")]),
        ({"a": {"b": [1, {"c": "x"}]}}, {"a": {"b": [1, {"c": "y"}]}}, [("a.b[1].c", '"x"', '"y"')]),
        (State(history=()), State(history=(), ledger=Ledger(retries=1)), [("ledger.retries", "0", "1")]),
        ({"a": Raw(b'{"k": 1}')}, {"a": Raw(b'{"k":2}')}, [("a.k", "1", "2")]),
    ],
)
def test_where_two_values_differ(
    before: object, after: object, expected: list[tuple[str, str | None, str | None]]
) -> None:
    assert [(d.path, d.before, d.after) for d in differences(before, after)] == expected


def test_a_long_text_is_shown_where_it_differs() -> None:
    before, after = "x" * 5000 + "cat" + "y" * 5000, "x" * 5000 + "dog" + "y" * 5000
    (found,) = differences(before, after)
    assert found.before is not None
    assert found.after is not None
    assert "cat" in found.before
    assert "dog" in found.after
    assert len(found.before) < 200


def test_a_value_that_is_nested_as_deep_as_json_may_be() -> None:
    deep = Raw(b"[" * 900 + b"1" + b"]" * 900)
    assert differences(deep, deep) == ()
    (found,) = differences(deep, Raw(b"[" * 900 + b"2" + b"]" * 900))
    assert (found.before, found.after) == ("1", "2")


def test_messages_and_calls_by_their_place_in_the_history() -> None:
    call = ToolCall(id="call_000000001", name="look", arguments="{}")
    before = State(history=(System(text="s"), User(text="Go."), Assistant(calls=(call,))))
    after = State(history=(System(text="s"), User(text="Go!"), Assistant()))
    assert [d.path for d in differences(before, after)] == ["history[1].text", "history[2].calls[0]"]


def test_lines_for_people_name_both_sides_and_what_is_left_out() -> None:
    found = tuple(Difference(path=f"a[{n}]", before="1", after=None) for n in range(12))
    text = as_lines(found, ("recorded", "now"))
    assert "  a[0]\n    recorded  1\n    now       (missing)" in text
    assert text.endswith("and 2 more")


@given(states, states)
def test_there_is_none_just_for_equal_states(one: State, other: State) -> None:
    assert differences(one, one) == ()
    assert bool(differences(one, other)) == (one != other)
