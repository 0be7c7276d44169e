"""Texts of files: a part is replaced only where it is there once, and otherwise the model is told how to go on."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forge.agent.files.texts import Edited, Unfound, edit, ending, lines_of, lines_with, numbered

CALC = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"

pieces = st.text(st.sampled_from("ab \n"), max_size=30)


@given(before=pieces, old=pieces, after=pieces, new=pieces)
def test_what_is_there_once_is_replaced_and_nothing_else(before: str, old: str, after: str, new: str) -> None:
    text = before + old + after
    places = sum(text.startswith(old, at) for at in range(len(text)))
    found = edit(text, old, new)
    if old.strip() and old != new and places == 1:
        assert isinstance(found, Edited)
        assert found.text == before + new + after
        assert found.first == before.count("\n") + 1
    else:
        assert isinstance(found, Unfound)


@given(st.text(st.sampled_from("ab\n\r"), max_size=40), st.text(max_size=8), st.text(max_size=8))
def test_every_edit_has_an_answer(text: str, old: str, new: str) -> None:
    assert isinstance(edit(text, old, new), Edited | Unfound)


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("    return a - b", "there 2 times, at lines 2, 6. Nothing was changed. Give more of the lines around"),
        ("return  a - b\n\n\ndef sub", "The nearest lines are:"),
        (
            "def add(a, b):\nreturn a - b",
            "but for spaces or line numbers. Nothing was changed. It is:\n1 | def add",
        ),
        ("1 | def add(a, b):\n2 |     return a - b", "It is:\n1 | def add(a, b):\n2 |     return a - b\nCopy"),
        (
            "def sub(x, y):",
            "6 |     return a - b\nYour text has 'def sub(x, y):' where the file has 'def sub(a, b):'. Copy",
        ),
        ("", "the text to replace is empty"),
        ("  \n", "the text to replace is empty"),
        ("def add(a, b):", "the old and the new text are the same"),
    ],
)
def test_what_cannot_be_replaced_is_told_with_the_way_out(old: str, said: str) -> None:
    found = edit(CALC, old, "def add(a, b):")
    assert isinstance(found, Unfound)
    assert said in found.reason


def test_a_text_in_very_many_places_names_the_first_of_them() -> None:
    found = edit("x\n" * 100_000, "x", "y")
    assert isinstance(found, Unfound)
    assert "more than 10 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10. " in found.reason


def test_an_empty_file_is_to_be_written() -> None:
    assert edit("", "a", "b") == Unfound(reason="that text is not in the file, which is empty; use write_file")


def test_the_line_ends_of_a_file_stay() -> None:
    found = edit("one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2")
    assert found == Edited(text="1\r\n2\r\nthree\r\n", first=1, last=2)


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    assert lines_of("\ufeffa\r\nb\n\nc") == ["a", "b", "", "c"]
    assert lines_of("a\n") == ["a"]
    assert lines_of("a\x0cb\u2028c") == ["a\x0cb\u2028c"]
    assert lines_of("") == []


@given(st.lists(st.text(st.characters(exclude_characters="\n\r"), max_size=20), min_size=1), st.integers(1, 200))
def test_reading_on_where_it_was_cut_shows_every_line_once(lines: list[str], most: int) -> None:
    seen: list[str] = []
    first = 1
    while first <= len(lines):
        told, last = numbered(lines, first, len(lines), most)
        seen += told.split("\n")
        first = last + 1
    assert seen == [f"{n} | {line}" for n, line in enumerate(lines, 1)]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r"), max_size=20), min_size=1), st.integers(1, 900))
def test_the_end_of_an_output_is_its_last_lines(lines: list[str], most: int) -> None:
    told, first = ending(lines, most)
    assert told.split("\n") == lines[first - 1 :]
    assert len(told) <= max(most, 550)


def test_a_line_of_any_length_is_shown_bounded() -> None:
    told, _ = numbered(["x" * 10_000], 1, 1, 100)
    assert told.endswith("[Cut — 9500 chars more]")
    assert len(ending(["x" * 10_000], 10)[0]) < 600


@given(pieces, st.text(st.sampled_from("abAB"), min_size=1, max_size=3))
def test_the_lines_with_a_text_are_found(text: str, wanted: str) -> None:
    assume("\r" not in text)
    lines = lines_of(text)
    assert list(lines_with(text, wanted, ignore_case=False)) == [
        (n, line) for n, line in enumerate(lines, 1) if wanted in line
    ]
    assert list(lines_with(text, wanted.upper(), ignore_case=True)) == [
        (n, line) for n, line in enumerate(lines, 1) if wanted.lower() in line
    ]
