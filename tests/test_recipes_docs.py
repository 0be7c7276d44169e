"""The programs of docs/recipes.md are executed, in one namespace, and print what stands below them."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "recipes.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def test_every_program_prints_what_the_page_says() -> None:
    namespace: dict[str, object] = {}
    for code, expected in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), namespace)  # noqa: S102 - the project's own page
        assert printed.getvalue() == expected


def test_every_symptom_has_a_program_and_its_output() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(code and printed for part in text.split("\n## ")[1:] for code, printed in [BLOCK.findall(part)[0]])
