"""The examples of docs/served.md are executed."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "served.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    assert len(BLOCKS) == 2
    names: dict[str, object] = {"__name__": "served"}
    for block in BLOCKS:  # the later ones go on from the first
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - the project's own page
