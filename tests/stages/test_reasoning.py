"""Reasoning: which tags begin and end it, and that a text without any is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.reasoning import (
    Split,
    SplitDelta,
    advance_split,
    finish_split,
    join_split,
    may_hold_reasoning,
    open_tag_start,
    split_reasoning,
    without_reasoning,
)

CALL = '<tool_call>{"name":"look"}</tool_call>'
TAGS = [
    ("<think>", "</think>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|channel>thought", "<channel|>"),
]


@pytest.mark.parametrize(("opening", "closing"), TAGS)
def test_what_stands_between_tags_is_reasoning(opening: str, closing: str) -> None:
    assert split_reasoning(f"{opening}\nHm.\n{closing}\n\nHello.") == ("Hm.", "Hello.")
    assert split_reasoning(f"Hm.{closing}Hello.") == ("Hm.", "Hello."), "the opening tag was in the prompt"


@pytest.mark.parametrize(
    ("text", "reasoning", "rest"),
    [
        ("<think>One.</think>a<think>Two.</think>b", "One.\n\nTwo.", "ab"),
        ("<think>Never closed", "Never closed", ""),
        (f"<think>Hm. {CALL}", "Hm.", CALL),
        ("I write `<think>` in quotes.", "", "I write `<think>` in quotes."),
        ('{"text":"<think>a</think>"}', "", '{"text":"<think>a</think>"}'),
        ("<|channel|>analysis<|message|>Hm.<|end|>Hello.", "Hm.", "Hello."),
        (" Hello. ", "", "Hello."),
    ],
)
def test_whole_replies(text: str, reasoning: str, rest: str) -> None:
    assert split_reasoning(text) == (reasoning, rest)


@pytest.mark.parametrize("text", [f"{a}Hm.{b}Hello." for a, b in TAGS])
def test_character_by_character_it_is_the_same(text: str) -> None:
    split, deltas = Split(), list[SplitDelta]()
    for character in text:
        split, more = advance_split(split, character)
        deltas += more
    assert join_split((*deltas, *finish_split(split))) == split_reasoning(text)


@pytest.mark.parametrize(("opening", "closing"), TAGS)
def test_every_position_stays_what_it_was(opening: str, closing: str) -> None:
    text = f"{opening}Hm.{closing}Hello."
    assert without_reasoning(text) == " " * (len(text) - 6) + "Hello."


@given(st.text(alphabet="abc {}\"'\n"))
def test_a_text_without_tags_has_no_reasoning(text: str) -> None:
    assert not may_hold_reasoning(text)
    assert (split_reasoning(text), without_reasoning(text)) == (("", text.strip()), text)


@pytest.mark.parametrize(
    ("text", "start"), [("Hello <thi", 6), ("Hello", 5), ("Hello <|channel", 6), ("a\n", 1), ("<b>", 3)]
)
def test_a_tag_whose_end_has_not_come_yet_is_waited_for(text: str, start: int) -> None:
    assert open_tag_start(text, 0) == start
