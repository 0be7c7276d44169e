"""docs/names.md: what it says is here is here."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from forge import Workflow
from forge.runtime.watching import Watching

PAGE = (Path(__file__).parents[1] / "docs" / "names.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in PAGE.splitlines() if line.startswith("| ")
]
HERE = [row[1] for row in ROWS]


def test_every_dotted_name_exists() -> None:
    names = {name for cell in HERE for name in re.findall(r"`((?:forge|stages)(?:\.\w+)+)`", cell)}
    assert len(names) > 50
    for name in sorted(names):
        module, _, last = name.rpartition(".")
        try:
            assert hasattr(importlib.import_module(module), last), name
        except ModuleNotFoundError:
            pytest.fail(f"{name}: there is no module {module}")


def test_every_option_exists() -> None:
    options = inspect.signature(Workflow).parameters
    for row in ROWS:
        named = re.findall(r"\boption `(\w+)", row[1])
        named += re.findall(r"`(\w+)`", row[0]) if re.match(r"options?(;|,|$)", row[1]) else []
        for name in named:
            assert name in options or name in Watching.__annotations__, name
        if row[1].startswith("run option") and "`" not in row[1].split(",")[0].split(";")[0]:
            assert re.findall(r"`(\w+)`", row[0])[0] in Watching.__annotations__, row[0]
