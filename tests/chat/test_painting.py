"""Answers in a terminal of rich: Markdown, and nothing of it that controls the terminal."""

import io
import re

import pytest

from forge.cli.chat.screen import Printed, Spelled
from forge.cli.chat.terminal_face import live_text, paint
from forge.cli.console import Console, LabelledText


def console() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=40, color_system="standard", highlight=False)


def painted(one: Printed) -> str:
    drawn = console()
    paint(drawn, one)
    assert isinstance(drawn.file, io.StringIO)
    return drawn.file.getvalue()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_markdown_is_drawn_with_what_is_suggested() -> None:
    shown = painted(Spelled("It is **7**:\n\n- one\n\n```python\nx = 1\n```", ("yes", "no")))
    assert "\x1b[1m7\x1b[0m" in shown
    words = plain(shown)
    assert "**" not in words
    assert "```" not in words
    assert [line.strip() for line in words.splitlines() if line.strip()] == [
        "It is 7:",
        "• one",
        "x = 1",
        "- yes",
        "- no",
    ]


@pytest.mark.parametrize(
    "text",
    ["&#27;[2J", "&#x202e;abc", "&#155;2J", "`\u202e`", "[a](http://b/\x1b]8;;)", "&#8203;", "\x1b]0;owned\x07 \x9b2J"],
)
def test_nothing_that_a_model_writes_controls_the_terminal(text: str) -> None:
    for shown in (painted(Spelled(text)), live_text(console(), text, 9)):
        assert all(c.isprintable() or c == "\n" for c in plain(shown))


def test_a_link_says_where_it_leads() -> None:
    shown = painted(Spelled("[my bank](http://evil.example)"))
    assert "\x1b]8" not in shown
    assert "http://evil.example" in plain(shown)


def test_the_end_of_a_growing_answer_is_shown() -> None:
    shown = plain(live_text(console(), "\n\n".join(f"line {n}" for n in range(900)), 3))
    assert [line.strip() for line in shown.splitlines()] == ["line 898", "", "line 899"]


def test_what_the_person_said_stands_apart() -> None:
    assert plain(painted(LabelledText("you", "hi\nyou"))).splitlines() == ["", "> hi", "  you"]
