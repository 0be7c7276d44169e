"""The examples of docs/memory.md are executed, one after the other in one namespace, in an empty folder."""

import re
from pathlib import Path

import pytest

from forge.agent import memory

PAGE = (Path(__file__).parents[1] / "docs" / "memory.md").read_text(encoding="utf-8")


def test_the_examples_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {"__name__": "docs.memory"}
    for block in blocks:
        exec(compile(block, "<docs/memory.md>", "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks) == 7
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]


def test_every_public_name_is_on_the_page() -> None:
    said = set(re.findall(r"\w+", PAGE))
    assert {*memory.__all__} - said - {"Fact", "SavedSession", "SessionSummary"} == set()
