"""The examples of docs/servers.md are executed, one after the other, with a program in llama-server's place."""

import re
from pathlib import Path

import pytest

from forge import Workflow, tool
from tests.test_server_manager import gguf, installed

PAGE = Path(__file__).parents[1] / "docs" / "servers.md"


@tool
def end() -> str:
    """End."""
    return "ok"


def test_the_examples_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    gguf(tmp_path, "models/qwen.gguf")
    installed(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FORGE_STATE", str(tmp_path / "state"))
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {"workflow": Workflow("w", tools=[end], terminal_tool="end")}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks) == 5
