"""A durable run is cancelled by another process, and its worker killed at a commit after that: at each, one by one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("doing", ["turn", "read", "write", "ask"])
def test_a_cancelled_run_ends_as_cancelled_wherever_its_worker_dies(tmp_path: Path, doing: str) -> None:
    for commit in range(1, 40):
        folder = tmp_path / str(commit)
        folder.mkdir()
        command = [sys.executable, "-m", "tests.durable.cancelled", str(folder), doing, str(commit)]
        said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        assert (folder / "ended").read_text() == "Cancelled, 0 calls without an answer"
        written = folder / "performed"
        assert (written.read_text() if written.exists() else "") == ("a\n" if doing in {"write", "ask"} else "")
        if said == "ended\n":
            assert commit > 2
            return
    raise AssertionError("it never ends without being killed")
