"""Lines as JSON: YAML and TOML as models write them for a call."""

import json

import pytest

from stages.repair.indented import indented_value, toml_value


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
        ('tags:\n  - "a: b"', {"tags": ["a: b"]}),
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            '[[call]]\nname = "f"\n[call.args]\nx = 1\ny = 1.50',
            {"call": [{"name": "f", "args": {"x": 1, "y": "1.50"}}]},
        ),
        ("[f]\nday = 2026-11-27\ntext = '''\none\n[two]'''", {"f": {"day": "2026-11-27", "text": "one\n[two]"}}),
        ('[f]\nx = "its end is lost\ny = 2', {"f": {"x": "its end is lost", "y": 2}}),
    ],
)
def test_toml_is_read_with_numbers_as_they_are_written(text: str, value: object) -> None:
    written = toml_value(text)
    assert written is not None
    assert json.loads(written) == value


@pytest.mark.parametrize(
    "text",
    [
        '[f]\nx = "cut off',
        "[f]\nx = ",
        f"[f]\nx = {'9' * 5_000}",
        f"{'.'.join(['a'] * 3_000)} = 1",
        '"a".' * 3_000 + "a = 1",
        f"x = {'[' * 2_000}{']' * 2_000}",
    ],
)
def test_toml_that_is_cut_off_or_hostile_is_nothing(text: str) -> None:
    assert toml_value(text) is None
