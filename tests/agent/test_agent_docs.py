"""The examples of docs/agent.md are executed, one after the other in one namespace."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_the_examples_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = DOCS / "agent.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {"__name__": "agent"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks) == 13
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)#:]+)[)#]", prose):
        assert (DOCS / link).exists(), link
