"""What docs/evals.md says of reports holds: its commands exist, its Python runs, its columns are those of a report."""

import re
import shlex
from pathlib import Path

from forge.cli.commands import parse
from forge.evals.report_texts import HEADINGS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "evals.md").read_text(encoding="utf-8")


def test_the_commands_exist() -> None:
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("forge "):
                parse(shlex.split(line.split("  #")[0])[1:])


def test_the_python_of_reports_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.partition("## From Python")[2], re.DOTALL | re.MULTILINE)[:1]
    exec(compile(block, "docs/evals.md", "exec"), {"__name__": "evals"})  # noqa: S102 - our own page


def test_every_column_is_explained_and_the_picture_is_there() -> None:
    explained = re.findall(r"^\| ([\w^, ]+) \|", PAGE, re.MULTILINE)
    assert {name for name, _ in HEADINGS} <= {name for names in explained for name in names.split(", ")}
    assert (DOCS / "evals-report.png").stat().st_size < 120_000
