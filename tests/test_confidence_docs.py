"""The examples of docs/confidence.md are executed, one after the other in one namespace."""

import re
from pathlib import Path

from stages.confidence import measure

PAGE = Path(__file__).parents[1] / "docs" / "confidence.md"


def test_the_examples_hold() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102  # the project's own page
    assert len(blocks) == 4


def test_every_step_that_the_page_names_exists() -> None:
    named = re.findall(r"^\| `(\w+)\(", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert named
    assert all(hasattr(measure, name) for name in named)
