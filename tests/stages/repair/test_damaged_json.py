"""Damaged JSON: what has one meaning is repaired, what is a guess has its price, what is cut off is not made up."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.repair import BrokenJson, FoundJson, json_at
from stages.repair.damaged_json import repair_json
from stages.repair.json_text import array_elements, is_json, object_members, string_value
from stages.repair.strings import literal_at

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
WHOLES = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("text", "value", "cost"),
    [
        ('{"a":1,}', {"a": 1}, 0),
        ("{'a':'b'}", {"a": "b"}, 0),
        ('{a:"b"}', {"a": "b"}, 0),
        ('{"a":True,"b":None}', {"a": True, "b": None}, 0),
        ('{"a":1 // one\n}', {"a": 1}, 0),
        ('{"a":"x\ny"}', {"a": "x\ny"}, 0),
        ("{\u201ca\u201d\uff1a\u201cb\u201d}", {"a": "b"}, 0),
        ('{"a":.5}', {"a": 0.5}, 0),
        ('{"a":[1,2}', {"a": [1, 2]}, 1),
        ('{"a":{"b":1}', {"a": {"b": 1}}, 1),
        ('{"a":"say "hi" now"}', {"a": 'say "hi" now'}, 3),
        ('{"a":"x", b":"y", "c: "z"}', {"a": "x", "b": "y", "c": "z"}, 0),
        ('{"a" 1, "b""x";"c": true}', {"a": 1, "b": "x", "c": True}, 0),
        ('{"a":"x""b":"y"}', {"a": "x", "b": "y"}, 0),
        ('{""a": ""x", "b": /x/y, "c" -> "z"}', {"a": "x", "b": "/x/y", "c": "z"}, 4),
        ('{"a": x y", "b": 2}', {"a": "x y", "b": 2}, 1),
        ('{"a": "x, "b": "y"}', {"a": "x", "b": "y"}, 3),
        ('{"a": {"b": "x}}</tool_call>', {"a": {"b": "x"}}, 3),
    ],
)
def test_a_damaged_value_and_what_its_repair_guesses(text: str, value: object, cost: int) -> None:
    found = repair_json(text, 0)
    assert isinstance(found, FoundJson)
    assert (json.loads(found.text), found.cost) == (value, cost)
    assert found.repairs


@pytest.mark.parametrize("text", ['{"a":"b', '{"a":tru', '{"a":', '["a", "b', '{"a', "{"])
def test_a_value_that_was_cut_off_is_not_completed(text: str) -> None:
    found = repair_json(text, 0)
    assert isinstance(found, BrokenJson)
    assert found.cut


@pytest.mark.parametrize("text", ['{"a":nan}', '{"a":1 2 3}', '{"a":"b" + c}', "{a b c}", "no", "[" * 100])
def test_what_cannot_be_read_is_left_alone(text: str) -> None:
    assert isinstance(repair_json(text, 0), BrokenJson)


@given(WHOLES, st.text(), st.text(alphabet=" \n.!?"))
def test_valid_json_in_the_middle_of_a_text_is_taken_as_it_was_written(value: object, before: str, after: str) -> None:
    written = json.dumps(value)
    found = json_at(before + written + after, len(before))
    assert found == FoundJson(text=written, end=len(before + written))


@given(WHOLES)
def test_a_reader_of_damaged_json_reads_valid_json_without_repairs(value: object) -> None:
    found = repair_json(json.dumps(value), 0)
    assert isinstance(found, FoundJson)
    assert (json.loads(found.text), found.cost, found.repairs) == (value, 0, ())


@given(st.text(alphabet="{}[]\",:'ab1 \n\\"), st.integers(0, 5))
def test_whatever_stands_there_what_comes_back_is_json_or_nothing(text: str, start: int) -> None:
    found = json_at(text, start)
    if isinstance(found, FoundJson):
        assert is_json(found.text)
        assert start < found.end <= len(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,", "1"), ("+1,", "1"), ("01,", "1"), ("1.,", "1.0"), ("1_000,", "1000"), ("None", "null"), ("true", "true")],
)
def test_literals(text: str, value: str) -> None:
    found = literal_at(text, 0)
    assert found is not None
    assert found.json == value


@pytest.mark.parametrize("text", ["12", "nobody,", "1e,", "--1,", ""])
def test_a_word_that_is_none_and_a_number_that_may_go_on(text: str) -> None:
    assert literal_at(text, 0) is None


def test_parts_of_a_value_are_given_as_they_were_written() -> None:
    members = object_members('{"a": "b", "n": 1.0}')
    assert members is not None
    assert (string_value(members["a"]), string_value(members["n"]), bytes(members["n"])) == ("b", None, b"1.0")
    assert [bytes(one) for one in array_elements('[1, "a"]') or ()] == [b"1", b'"a"']
    assert (object_members("[1]"), array_elements("{}"), object_members("no")) == (None, None, None)


def test_the_cost_of_repairs_grows_with_their_number() -> None:
    """Sixteen times as many: looking through those made so far at each would take 120 times as long."""

    def least(count: int) -> float:
        def taken() -> float:
            began = time.process_time()
            json_at("{" + "'" * count, 0)
            return time.process_time() - began

        return min(taken() for _ in range(3))

    assert least(80_000) <= 40 * least(5_000) + 0.05
