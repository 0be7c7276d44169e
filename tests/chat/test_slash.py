"""What a typed line asks for."""

import pytest

from forge.cli.chat.slash import Mistyped, SlashCommand, Spoken, TypedLine, typed_line

LINES: list[tuple[str, TypedLine]] = [
    ("hello", Spoken("hello")),
    ("  two\nlines ", Spoken("two\nlines")),
    ("", Spoken("")),
    ("/help", SlashCommand("help")),
    ("/HELP  ", SlashCommand("help")),
    ("/load", SlashCommand("load")),
    ("/load  my talk ", SlashCommand("load", "my talk")),
    ("/save draft", SlashCommand("save", "draft")),
    ("/model qwen", SlashCommand("model", "qwen")),
    ("/etc/passwd is what?", Spoken("/etc/passwd is what?")),
    (" /help me", Spoken("/help me")),
    ("/", Spoken("/")),
    ("/save", Mistyped("usage: /save NAME")),
    ("/remember I am Ada.", SlashCommand("remember", "I am Ada.")),
    ("/forget", Mistyped("usage: /forget NUMBER")),
    ("/undo 3", Mistyped("/undo takes no argument")),
]


@pytest.mark.parametrize(("line", "asked"), LINES)
def test_a_line_is_a_message_or_a_command(line: str, asked: TypedLine) -> None:
    assert typed_line(line) == asked


def test_a_command_that_there_is_not_is_refused_with_what_was_meant() -> None:
    wrong = typed_line("/hlep me")
    assert isinstance(wrong, Mistyped)
    assert "there is no command /hlep" in wrong.problem
    assert "Did you mean help?" in wrong.problem
