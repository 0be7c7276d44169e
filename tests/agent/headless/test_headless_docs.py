"""docs/headless.md: its task file is one, its commands exist, its example holds, its tables are complete."""

import re
from pathlib import Path
from typing import get_args

import msgspec

from forge.agent.headless import Record, TaskLimits, read_task
from forge.agent.headless.running import EXIT_CODES, Outcome

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "headless.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_task_file_and_the_example_hold(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(block("toml"))
    assert read_task(tmp_path / "task.toml").limits.max_lines == 40
    exec(compile(block("python"), "headless.md", "exec"), {"__name__": "headless"})  # noqa: S102 - the project's own page


def test_the_tables_are_complete() -> None:
    assert [name for name in TaskLimits.__struct_fields__ if f"`{name}`" not in PAGE] == []
    assert [field.name for field in msgspec.structs.fields(Record) if f"`{field.name}`" not in PAGE] == [
        *("exit_code", "task", "folder")
    ]
    rows = dict(re.findall(r"^\| ([\d, ]+) \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert {code.split(",")[0]: name for code, name in rows.items()} == {
        str(code): name for name, code in EXIT_CODES.items()
    }
    assert {*rows.values()} == {*get_args(Outcome)}


def test_the_links_lead_somewhere() -> None:
    for page, place in re.findall(r"\]\(([\w.]+)(?:#([\w-]+))?\)", PAGE):
        text = (DOCS / page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
        titles = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
        assert not place or place in titles, (page, place)
