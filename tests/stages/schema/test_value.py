"""JSON values: their kinds, how a text quotes them, and lost members."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.schema.value import cut_text, pairs_lost, shown_value


@given(st.text(), st.integers(1, 20))
def test_a_cut_text_is_no_longer_than_allowed(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert len(cut) <= limit
    assert cut == text or cut.endswith("…")


def test_a_long_value_is_shown_by_its_beginning() -> None:
    assert shown_value({"a": [1, "b"]}) == '{"a":[1,"b"]}'
    assert len(shown_value(["x" * 1_000])) == 80


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        *(('{"a":1,"a":2}', True), ('{"a":{"b":1,"b":2}}', True), ('{"a":1,"b":2}', False), ('{"a":"x:y"}', False)),
        (r'{"to":"a\u003a","n":1,"n":2}', True),
        (r'{"to":"a\\\u003A","n":1,"n":2}', True),
        (r'{"n\u003A":1,"n:":2}', True),
        (r'{"to":"a\u003a\u003A\\\u003a","n":1}', False),
        (r'{"to":"\\u003a","n":1}', False),
    ],
)
def test_a_name_that_is_given_twice_is_noticed(text: str, *, lost: bool) -> None:
    assert pairs_lost(text, json.loads(text)) == lost
