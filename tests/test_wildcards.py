"""Wildcards, beside the same patterns as regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.wildcards import matches


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("qwen*", "qwen2.5-coder", True),
        ("qwen*", "my-qwen", False),
        ("*qwen*", "my-qwen:4b", True),
        ("gpt", "gpt", True),
        ("gpt", "gpt-4", False),
        ("*", "", True),
        ("a*a", "a", False),
        ("[a]?*", "[a]?x", True),
    ],
)
def test_only_the_star_is_special(pattern: str, text: str, fits: bool) -> None:
    assert matches(pattern, text) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_it_agrees_with_the_same_pattern_as_a_regular_expression(pattern: str, text: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert matches(pattern, text) is (re.fullmatch(expression, text) is not None)


def test_many_stars_on_a_long_text_do_not_search_it_again_and_again() -> None:
    """A search that went back would take longer than the age of the universe."""
    assert not matches("*a" * 40 + "*b*c", "a" * 100_000 + "b")
