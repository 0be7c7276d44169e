"""Indented lines as JSON: YAML as models write it for a call."""

import json

import pytest

from stages.repair.indented import indented_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("name: f\nargs:\n  city: Oslo\n  days: 3", {"name": "f", "args": {"city": "Oslo", "days": "3"}}),
        (
            'calls:\n- name: f\n  with: {"a": 1}\n- name: g',
            {"calls": [{"name": "f", "with": {"a": 1}}, {"name": "g"}]},
        ),
        ("tags:\n  - red\n  - 'dark blue'\nnone:", {"tags": ["red", "dark blue"], "none": None}),
        ("text: |-\n  one\n\n    two\nend: x", {"text": "one\n\n  two", "end": "x"}),
        ("text: >\n  one\n  two", {"text": "one two"}),
        ("- - a", ["- a"]),
    ],
)
def test_mappings_lists_and_blocks_of_text_are_read(text: str, value: object) -> None:
    written = indented_value(text)
    assert written is not None
    assert json.loads(written) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "a: 1\nwords",
        "a: 1\n  b: 2",
        "a: 1\na: 2",
        'a: "cut off',
        "".join(f"{' ' * level}a:\n" for level in range(12)),
    ],
)
def test_what_is_no_mapping_or_cut_off_or_too_deep_is_nothing(text: str) -> None:
    assert indented_value(text) is None
