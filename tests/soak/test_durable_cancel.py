"""A durable run is cancelled by another process, and its worker killed at a commit after that: at each, one by one."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from forge import call, durable
from forge.durable import segment
from stages.effect import Reply, Send
from stages.halt import Cancelled
from tests.durable.till import Answering, till

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


class Hanging(Answering):
    """Looks up an order in the first turn, and hangs in the second."""

    def __init__(self) -> None:
        super().__init__(self._look_up)
        self.asked = asyncio.Event()

    async def _look_up(self, effect: Send) -> Reply:
        if effect.turn == 2:
            self.asked.set()
            await asyncio.Event().wait()
        return call("get_order", order_id="A")


async def test_a_segment_that_begins_before_the_last_one_has_ended_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a slow database, a segment is still noting that it is over while the next one works."""
    monkeypatch.setattr(segment, "_EFFECTS", 2)
    model = Hanging()
    async with durable.worker(till, database=tmp_path / "runs.db", backend=model) as runs:

        @sa.event.listens_for(runs._database.engine, "before_cursor_execute")
        def _(_: object, __: object, statement: str, *___: object) -> None:
            if "attributes" in statement and statement.startswith("UPDATE") and not model.asked.is_set():
                time.sleep(1.5)

        run = await runs.start(till, "Pay order A")
        await model.asked.wait()
        await asyncio.sleep(3.0)  # the first segment has ended
        await runs.cancel(run)
        async with asyncio.timeout(10):
            assert isinstance((await runs.result(run)).failure().halt, Cancelled)
