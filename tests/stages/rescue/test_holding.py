"""Holding: of a streamed text, words are shown at once and a call never is, however the stream is split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.rescue import FAMILIES
from stages.rescue.holding import WINDOW, Holding
from stages.rescue.markers import openers
from stages.rescue.names import name_search

BEGUN = Holding(openers(FAMILIES).anywhere, name_search(["look"]))
CALLS = [
    '<tool_call>{"name":"look","arguments":{}}</tool_call>',
    '{"name": "look", "arguments": {}}',
    '```json\n{"tool": "look"}\n```',
    "[look(what='a')]",
    "<function=look>\n</function>",
    "Action: look\nAction Input: a",
]


def shown(*chunks: str) -> str:
    """What of these chunks is shown, the end of the stream not counted."""
    holding, text, done = BEGUN, "".join(chunks), 0
    for chunk in chunks:
        holding, more = holding.advance(chunk)
        done += more
    return text[:done]


@pytest.mark.parametrize(
    "text", ["Hello, how are you? ", "Two lines.\n\nAnd a third. ", "3 apples, and a price of 9.50. "]
)
def test_words_are_shown_at_once(text: str) -> None:
    assert shown(text) == text
    assert shown(*text) == text


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_not_shown_however_the_stream_is_split(call: str) -> None:
    before = "I look it up.\n"
    for text in (shown(before + call), shown(*before, *call), shown(before, call, "\nDone. " * 100)):
        assert len(text) <= len(before)


@pytest.mark.parametrize("text", ["In HTML, <b>bold</b> is bold. ", "Use {} for an empty object. ", "a[0] = b[1] "])
def test_what_only_looks_like_a_beginning_is_shown_once_it_is_clear(text: str) -> None:
    whole = text + "And so on, and so forth. " * (2 * WINDOW // 20)
    assert shown(*whole).startswith(text)


@given(st.lists(st.sampled_from([*"ab .\n<{[", "look", "<tool_call>", '{"name":'])))
def test_what_is_shown_is_a_beginning_and_the_rest_is_held(chunks: list[str]) -> None:
    holding, done = BEGUN, 0
    for chunk in chunks:
        holding, more = holding.advance(chunk)
        done += more
    assert "".join(chunks)[done:] == holding.text
