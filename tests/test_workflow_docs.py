"""The examples of docs/workflow.md and docs/guardrails.md are executed, one after the other in one namespace a page."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("name", "count"), [("workflow", 10), ("guardrails", 3)])
def test_the_examples_hold(name: str, count: int) -> None:
    page = DOCS / f"{name}.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {"__name__": name}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks) == count
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (DOCS / link).exists(), link
