"""The examples of docs/tools.md are executed, one after the other in one namespace."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "tools.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    namespace: dict[str, object] = {"__name__": "tools"}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks("python")) == 4
