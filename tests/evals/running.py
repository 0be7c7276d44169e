"""`forge eval run` as a process, on a real server process in the place of a model's: `tests.eval_model`."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.evals.results import read_results
from forge.evals.row import Row
from tests.commands import forge
from tests.evals.scenarios import SCENARIOS
from tests.serving import process


@contextmanager
def served(slots: int = 1, model: str = "/models/tiny.gguf") -> Iterator[str]:
    """The address of a fresh model server."""
    with process("eval_model.py", str(slots), model) as address:
        yield address


def command(folder: Path, server: str, *words: str, text: str = SCENARIOS) -> list[str]:
    """`forge eval run` on the scenarios of `tests.evals.scenarios`, two runs of each."""
    (folder / "mine.py").write_text(text)
    eval_run = [sys.executable, "-m", "forge", "eval", "run", "mine.py"]
    files = [word for word in words if word.endswith(".py")]
    options = [word for word in words if not word.endswith(".py")]
    return [*eval_run, *files, "--backend", server, "--runs", "2", "-o", "r.jsonl", *options]


def run(folder: Path, server: str, *words: str, text: str = SCENARIOS) -> subprocess.CompletedProcess[str]:
    """The command, ended; in this process, which shows the same."""
    return forge(*command(folder, server, *words, text=text)[3:], cwd=folder)


def rows(folder: Path) -> dict[tuple[str, str, int], Row]:
    """What it wrote, by configuration, scenario and seed."""
    found = read_results(folder / "r.jsonl")
    return {(row.configuration.name, row.scenario, row.seed): row for row in found}
