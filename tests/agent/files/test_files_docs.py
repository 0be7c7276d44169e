"""The example of docs/files.md is executed, and its table has every tool with what it says of it."""

import re
from pathlib import Path

from forge.agent import file_tools
from forge.tools import Tool

PAGE = (Path(__file__).parents[3] / "docs" / "files.md").read_text(encoding="utf-8")


def test_the_example_holds() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    exec(compile(block, "files.md", "exec"), {"__name__": "files"})  # noqa: S102 - the project's own page


def test_the_table_is_the_tools(tmp_path: Path) -> None:
    rows = re.findall(r"^\| `(\w+)\((.*?)\)` \|.*\| (yes|no) \|$", PAGE, re.MULTILINE)
    made = {one.name: one.spec for one in file_tools(tmp_path) if isinstance(one, Tool)}
    assert {name for name, _, _ in rows} == {*made}
    for name, arguments, asks in rows:
        assert made[name].approval is (asks == "yes")
        assert all(f'"{argument}"'.encode() in bytes(made[name].parameters) for argument in arguments.split(", "))
