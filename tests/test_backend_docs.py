"""docs/backends.md keeps what it promises: its examples run, its profile is one, its table names what there is."""

import re
from pathlib import Path

from msgspec.structs import fields

from forge.backends import Backend, named
from forge.backends.profile import Profile, from_toml, names

PAGE = (Path(__file__).parents[1] / "docs" / "backends.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    namespace: dict[str, object] = {"__name__": "backends"}
    blocks = [code for language, code in BLOCKS if language == "python"]
    for block in blocks:
        exec(compile(block, "docs/backends.md", "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks) == 4


def test_the_profile_is_one() -> None:
    (block,) = [code for language, code in BLOCKS if language == "toml"]
    assert from_toml(block).option_names["min_p"] == ""


def test_every_field_of_a_profile_and_every_name_is_told_of() -> None:
    rows = " ".join(re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE))
    assert {field.name for field in fields(Profile)} - {"name"} == set(re.findall(r"`(\w+)`", rows))
    assert all(
        f"`{name}" in PAGE or f'"{name}"' in PAGE
        for name in names()
        if name not in {"openai-compatible", "llama-server"}
    )


def test_what_the_table_says_to_write_names_a_backend() -> None:
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert len(rows) == 8
    for spec in rows:
        named_backend: Backend = named(spec)
        assert named_backend
