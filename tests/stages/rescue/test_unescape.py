"""Unescaping: what texts hide behind escapes and margins."""

import json
from collections.abc import Callable
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.rescue.unescape import unescape_layers, unescape_letters, without_margin


@pytest.mark.parametrize("hidden", ["\\u006cook", "\\x6cook", "&#108;ook", "&#x6c;ook", "lo\u200bok", "&amp;#108;ook"])
def test_letters_behind_escapes_are_seen(hidden: str) -> None:
    assert unescape_letters(hidden) == "look"


@given(st.text(alphabet=st.characters(codec="ascii", exclude_characters="\\&")))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert unescape_letters(text) == text
    assert [*unescape_layers(text)] == [text]


@pytest.mark.parametrize(
    "hide", [lambda text: json.dumps(text)[1:-1], escape, lambda text: json.dumps(json.dumps(text))]
)
def test_a_text_is_found_under_its_layers(hide: Callable[[str], str]) -> None:
    text = '{"name":"look"}'
    assert any(text in layer for layer in unescape_layers(hide(text)))


@pytest.mark.parametrize(
    ("text", "plain"),
    [("> a\n> b", "a\nb"), ("1: a\n2: b", "a\nb"), ("// a\n// b", "a\nb"), ("a\nb", None), ("> a", None)],
)
def test_a_margin_is_taken_off(text: str, plain: str | None) -> None:
    assert without_margin(text) == plain
