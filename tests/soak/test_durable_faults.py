"""Durable runs whose database cannot grow for some seconds, and whose clock jumps: nothing lost, nothing twice."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("fault", ["disk", "clock"])
def test_runs_outlive_a_fault(tmp_path: Path, fault: str) -> None:
    command = [sys.executable, "-m", "tests.durable.faults", str(tmp_path), fault]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "8 completed, 96 writes, 0 twice\n"
    if fault == "disk":
        assert "cannot record the run" in done.stderr
