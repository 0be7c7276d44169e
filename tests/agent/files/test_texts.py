"""Texts of files: shown with line numbers, in pieces that leave nothing out, and bounded."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forge.agent.files.editing import ending, lines_of, lines_with, numbered, unfenced

pieces = st.text(st.sampled_from("ab \n"), max_size=30)


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


@pytest.mark.parametrize(
    ("text", "name", "written"),
    [
        ("```python\nx = 1\n```", "a.py", "x = 1\n"),
        ("\n```\nx = 1\n\ny = 2\n```\n", "a.py", "x = 1\n\ny = 2\n"),
        ("```\n```", "a.py", ""),
        ("```python\nx = 1\n```", "README.md", "```python\nx = 1\n```"),
        ("```python\nx = 1\n```\nSo it is 1.", "a.py", "```python\nx = 1\n```\nSo it is 1."),
        ("```a\nx\n```\n```b\ny\n```", "a.txt", "```a\nx\n```\n```b\ny\n```"),
        ("```x = 1```", "a.py", "```x = 1```"),
        ("```", "a.py", "```"),
    ],
)
def test_a_code_fence_around_all_of_a_file_is_no_part_of_it(text: str, name: str, written: str) -> None:
    assert unfenced(text, name) == written


@given(st.text(st.characters(exclude_characters="`\r")))
def test_what_has_no_fence_is_written_as_it_is(text: str) -> None:
    assert unfenced(text, "a.py") == text
    assert unfenced(f"```py\n{text}\n```", "a.py") == f"{text}\n"
