"""The examples of docs/workflow.md, guardrails.md and pipeline.md are executed, in one namespace a page."""

import dataclasses
import re
from pathlib import Path

import pytest

from forge import Calls, Context, Limits, Workflow

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("name", "count"), [("workflow", 11), ("guardrails", 3), ("pipeline", 17)])
def test_the_examples_hold(name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / f"{name}.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {"__name__": name}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks) == count


def test_the_tables_have_all_options() -> None:
    page = (DOCS / "workflow.md").read_text(encoding="utf-8")
    text = page[page.index("## All options") : page.index("## Tools")]
    named = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)\|", text, re.MULTILINE)))
    options = [option.name for option in dataclasses.fields(Workflow)]
    assert named == [*options, *(name for group in (Limits, Context, Calls) for name in group.__struct_fields__)]
