"""The examples of docs/rescue.md are executed, one after the other in one namespace."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "rescue.md"


def test_the_examples_hold() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102  # the project's own page
    assert len(blocks) == 5
