"""The examples of docs/journal.md are executed, one after the other in one namespace."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "journal.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_examples_hold() -> None:
    namespace: dict[str, object] = {"__name__": "journal"}
    blocks = [code for language, code in BLOCKS if language == "python"]
    assert len(blocks) == 6
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102 - the project's own page
