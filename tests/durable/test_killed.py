"""A durable run killed (-9) at every point of it: nothing lost, no write made twice, unknown ones asked about."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from forge.journal.records import read_journal
from forge.journal.replaying import states
from stages.effect import Ask, Execute
from stages.events import HistoryCompacted, RunFinished

ROOT = Path(__file__).parents[2]
WRITES = ("write a", "pay 5", "write b")


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def killed(folder: Path, *points: str) -> list[str]:
    """Run the program, killed at these points, or at all; where it was killed."""
    subprocess.run([sys.executable, "-m", "tests.durable.killed", folder, *points], cwd=ROOT, check=True)
    performed = Counter(lines(folder / "performed"))
    assert [performed[name] for name in WRITES] == [1, 1, 1]
    journal = read_journal(folder / "run.jsonl")
    assert journal.pending is None
    # Each effect has one outcome: in doubt first, where it was begun, and settled by a question.
    effects = [entry.effect for entry in journal.entries]
    calls = Counter(one.calls[0].name for one in effects if isinstance(one, Execute))
    died = lines(folder / "killed")
    doubts = {name: sum(point.startswith(name) for point in died) for name in WRITES}
    approvals = 1 + ("pay 5 begins" in died)  # a yes was for once: a call that turns out not to have run is asked again
    assert sum(isinstance(one, Ask) for one in effects) == approvals + sum(doubts.values())
    assert lines(folder / "asked") == [
        f"{name}: {'it did happen' if point.endswith('done') else 'it did not'}"
        for point in died
        for name in WRITES
        if point.startswith(name)
    ]
    assert (calls["read"], calls["finish"]) == (3, 1)
    sys.argv = ["killed", str(folder)]
    from tests.durable import killed as program

    events = [one.event for step in states(journal, program.workflow) for one in step.events]
    assert any(isinstance(event, HistoryCompacted) for event in events)
    assert isinstance(events[-1], RunFinished)
    return died


def test_a_run_is_killed_in_the_middle_of_a_write(tmp_path: Path) -> None:
    assert len(killed(tmp_path, "read 1 is done", "write a begins", "write a is done")) == 3


@pytest.mark.soak
def test_a_run_is_killed_at_every_effect(tmp_path: Path) -> None:
    assert len(killed(tmp_path)) == 21
