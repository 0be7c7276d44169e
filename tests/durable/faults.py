"""A worker whose database cannot grow for a while, as on a full disk, or whose clock jumps an hour: FOLDER FAULT."""

import asyncio
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
from returns.result import Success

from forge import Calls, Limits, Workflow, call, durable, tool
from stages.effect import Reply, Send, Settled
from tests.durable.till import Answering

FOLDER, FAULT = Path(sys.argv[1]), sys.argv[2]
RUNS, TURNS = 8, 12
RHYTHM = durable.Rhythm(heartbeat=0.2, dead_after=1.0)
performed: Counter[str] = Counter()


@tool
async def write(what: str) -> str:
    """Write."""
    performed[what] += 1
    await asyncio.sleep(0.02)
    return "x" * 500


@tool(idempotent=True)
def finish(note: str) -> str:
    """Finish."""
    return note


workflow = Workflow(
    "faults",
    tools=[write, finish],
    required_steps=["write"],
    terminal_tool="finish",
    calls=Calls(in_doubt="ask"),
    limits=Limits(max_iterations=30),
)


async def answer(effect: Send) -> Reply:
    """Writes so many times, then ends."""
    run = effect.request.body.partition(b"run-")[2][:1].decode()
    return call("write", what=f"{run} {effect.turn}") if effect.turn <= TURNS else call("finish", note=run)


async def full(seconds: float) -> None:
    """No file of this process can grow: what is written beyond the size that files have fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(os.path.getsize(FOLDER / name) for name in os.listdir(FOLDER))  # noqa: PTH202, PTH208
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    await asyncio.sleep(seconds)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def jump(seconds: float) -> None:
    """The wall clock of this process is set on, or back."""
    now = time.time
    time.time = lambda: now() + seconds


async def main() -> None:
    async with durable.worker(workflow, database=FOLDER / "runs.db", backend=Answering(answer), rhythm=RHYTHM) as runs:
        started = [await runs.start(workflow, f"Do run-{number}") for number in range(RUNS)]
        while sum(performed.values()) < RUNS * TURNS // 4:  # noqa: ASYNC110 - in the middle of the work
            await asyncio.sleep(0.01)
        if FAULT == "disk":
            await full(4.0)
        else:
            jump(3600.0)
            await asyncio.sleep(1.0)
            jump(-7200.0)
        ends = Counter[str]()
        for run in started:
            while (question := (await runs.wait(run)).question) is not None:
                assert question.in_doubt is not None
                what = msgspec.json.decode(question.in_doubt.arguments, type=dict[str, str])["what"]
                ends["unknown"] += 1
                await runs.answer(run, Settled(digest=question.digest, happened=what in performed))
            ends["completed"] += isinstance(await runs.result(run), Success)
        print(f"{ends['completed']} completed, {len(performed)} writes, {performed.total() - len(performed)} twice")
        print(f"{ends['unknown']} asked about", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main())
