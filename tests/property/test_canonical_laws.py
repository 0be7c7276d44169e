"""What canonical JSON is: one text for what means the same, and for nothing else."""

import json
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from stages.schema.canonical_json import canonical

NUMBERS = st.integers() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(NUMBERS, min_size=2, max_size=2))
def test_numbers_are_the_same_where_they_are_equal_exactly(pair: list[float]) -> None:
    one, other = (canonical(json.dumps({"a": number})) for number in pair)
    exactly = [Decimal(number) for number in pair]  # a float is a number in binary: what it is, not what it prints
    assert (one == other) == (exactly[0] == exactly[1])


@given(number=st.integers(-(2**53), 2**53))
def test_a_number_is_the_same_however_it_is_written(number: int) -> None:
    forms = (f"{number}", f"{number}.0", f"{number}e0", f"{number * 10}E-1")
    assert {canonical(f'{{"a":[{form}]}}') for form in forms} == {f'{{"a":[{number}]}}'}


@given(VALUES)
def test_it_means_the_same_and_is_its_own_canonical_form(value: object) -> None:
    text = canonical(json.dumps(value))
    assert json.loads(text) == value
    assert canonical(text) == text
    assert canonical(json.dumps(value, indent=1, sort_keys=True)) == text


@given(st.text() | st.just("[" * 9_000 + "]" * 9_000))
def test_what_is_no_json_is_itself(text: str) -> None:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        assert canonical(text) == text
