"""Editing: a part is replaced only where it is there once, and otherwise the model is told how to go on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.agent.files.editing import Edited, Unfound, edit, kept_lines, lines_of

CALC = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
SHOP = "class Cart:\n    def total(self):\n        found = 0\n\n        return found - 1\n"

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


@given(st.text(st.sampled_from("ab|1 \n\r"), max_size=40), st.text(max_size=8), st.text(max_size=8))
def test_every_edit_has_an_answer(text: str, old: str, new: str) -> None:
    assert isinstance(edit(text, old, new), Edited | Unfound)


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("return found-1", "return found", "        return found\n"),
        ("5 |         return found - 1", "5 |         return found", "        return found\n"),
        ("5 |         return found - 1", "        return found", "        return found\n"),
        ("found=0\n\nreturn found - 1", "found=0\n\nreturn found", "        return found\n"),
        ("\n  found=0\n\n  return found - 1\n", "  found=0\n\n  if found:\n    return found\n  return 0", None),
        ("            found = 0\n\n            return found-1", "            found = 0\n\n            return 2", None),
    ],
    ids=["spaces", "numbers", "old-numbers", "no-indentation", "less-indentation", "more-indentation"],
)
def test_lines_copied_with_other_spaces_or_with_numbers_are_found(old: str, new: str, after: str | None) -> None:
    found = edit(SHOP, old, new)
    assert isinstance(found, Edited)
    assert found.text.startswith("class Cart:\n    def total(self):\n        found = 0\n\n        "), "these lines stay"
    compile(found.text, "shop", "exec")
    assert after is None or found.text.endswith(f"\n\n{after}")


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("    return a - b", "there 2 times, at lines 2, 6. Nothing was changed. Give more of the lines around"),
        ("return a-b", "there 2 times, at lines 2, 6."),
        ("return  a - b\n\n\ndef sub", "The nearest lines are:"),
        (
            "def add(a, b):\nreturn a - b",
            "indented otherwise. Nothing was changed. It is:\n1 | def add(a, b):\n2 |     return a - b\nCopy",
        ),
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


indents, words = st.sampled_from(["", "  ", "    "]), st.text(st.sampled_from("ab 1|"), max_size=5)
indented = st.lists(st.builds(str.__add__, indents, words), max_size=6).map("\n".join)


def changed(old: list[str], new: list[str]) -> int:
    return len(old) + len(new) - 2 * sum(kept_lines(old, new))


@given(text=indented, old=indented, new=indented)
def test_no_more_lines_change_than_the_arguments_say(text: str, old: str, new: str) -> None:
    found = edit(text, old, new)
    if isinstance(found, Edited) and old not in text:
        assert changed(text.split("\n"), found.text.split("\n")) <= changed(lines_of(old), lines_of(new))


def test_a_text_in_very_many_places_names_the_first_of_them() -> None:
    for old in ("x", " x"):
        found = edit("x\n" * 100_000, old, "y")
        assert isinstance(found, Unfound)
        assert "more than 10 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10. " in found.reason


def test_an_empty_file_is_to_be_written() -> None:
    assert edit("", "a", "b") == Unfound(reason="that text is not in the file, which is empty; use write_file")


@pytest.mark.parametrize("old", ["one\ntwo", "one \ntwo"])
def test_the_line_ends_of_a_file_stay(old: str) -> None:
    found = edit("one\r\ntwo\r\nthree\r\n", old, "1\n2")
    assert found == Edited(text="1\r\n2\r\nthree\r\n", first=1, last=2)
    last = edit("three\r\none\r\ntwo", old, "1\n2")
    assert isinstance(last, Edited)
    assert last.text == "three\r\n1\r\n2"
