"""The examples of the pages are executed, each page's one after the other in one namespace, in an empty folder."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
ELSEWHERE = {
    "chat": "test_docs_tables.py loads its agent",
    "doctor": "test_doctor_docs.py, with a server",
    "proxy": "test_proxy_docs.py, with a proxy",
    "recipes": "test_recipes_docs.py, with what is printed",
    "served": "tests/serve",
    "servers": "test_servers_docs.py, with a program to start",
    "tutorial": "test_tutorial_docs.py, with what is printed",
}
"""Pages whose examples need more than themselves, and who runs those."""
PAGES = [page for page in sorted(DOCS.glob("*.md")) if "```python" in page.read_text() and page.stem not in ELSEWHERE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_the_examples_hold(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("```python")
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 - the project's own page
