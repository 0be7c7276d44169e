"""The examples of docs/workflow.md, guardrails.md and pipeline.md are executed, in one namespace a page."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

from forge import Agent, Calls, Context, Limits, Workflow
from forge.guardrails import Guardrails
from forge.workflow.workflow import StepOptions

GROUPS = (Workflow, Limits, Context, Calls, Agent, Guardrails)
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


def test_the_tables_have_all_options_and_say_when_to_change_each() -> None:
    page = (DOCS / "workflow.md").read_text(encoding="utf-8")
    tables = dict(zip(GROUPS, re.findall(r"^\| option \|.*\n\|---.*\n((?:\|.*\n)+)", page, re.MULTILINE), strict=True))
    for group, table in tables.items():
        rows = [row.strip("|").split("|") for row in table.splitlines()]
        named = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
        of_workflow = {option.name for option in dataclasses.fields(Workflow)} if group is Agent else set()
        own = [n for n in inspect.signature(group).parameters if n != "options" and n not in of_workflow]
        assert named == own, group.__name__
        # What says no more is a group of options, which has a table of its own.
        assert all(row[-1].strip() or "`limits`" in row[0] for row in rows), group.__name__


def test_the_options_of_guardrails_beside_its_own_are_all_named() -> None:
    page = (DOCS / "workflow.md").read_text(encoding="utf-8")
    sentence = page[page.index("[Guardrails](guardrails.md) take") :].split(", as above")[0]
    assert set(re.findall(r"`(\w+)`", sentence)) == {*StepOptions.__annotations__}
