"""The examples of docs/testing.md are executed, one after the other in one namespace, and name all of the kit."""

import re
from pathlib import Path

from forge import testing

PAGE = (Path(__file__).parents[1] / "docs" / "testing.md").read_text(encoding="utf-8")


def test_the_examples_hold() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    namespace: dict[str, object] = {"__name__": "docs.testing"}
    for block in blocks:
        exec(compile(block, "<docs/testing.md>", "exec"), namespace)  # noqa: S102 - the project's own page
    assert len(blocks) == 7


def test_every_name_of_the_kit_is_in_its_table() -> None:
    table = "".join(line for line in PAGE.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)", table)) == set(testing.__all__)
