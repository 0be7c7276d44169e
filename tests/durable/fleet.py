"""A worker of a fleet on one database: runs of ten turns with three writes each, which append to a file."""

import asyncio
import re
import sys
from pathlib import Path

from forge import Calls, Limits, Workflow, call, durable, tool
from stages.effect import Reply, Send
from tests.durable.till import Answering

PERFORMED = Path(sys.argv[1]) / "performed" if len(sys.argv) > 1 else Path("performed")
WRITES = {3: "a", 6: "b", 9: "c"}
"""The turns that write, and what."""


@tool(effect="read")
async def read(number: int) -> str:
    """Read."""
    await asyncio.sleep(0.05)
    return f"read {number}"


@tool
async def write(what: str) -> str:
    """Write."""
    await asyncio.sleep(0.05)
    with PERFORMED.open("a") as file:
        file.write(f"{what}\n")
    await asyncio.sleep(0.05)
    return "written"


@tool(idempotent=True)
def finish(note: str) -> str:
    """Finish."""
    return note


workflow = Workflow(
    "fleet",
    tools=[read, write, finish],
    required_steps=["write"],
    terminal_tool="finish",
    calls=Calls(in_doubt="ask"),
    limits=Limits(max_iterations=30),
)


async def answer(effect: Send) -> Reply:
    """Goes by the run, which its user's message names, and the number of the turn."""
    named = re.search(rb"run-\d+", effect.request.body)
    run = named[0].decode() if named else "?"
    await asyncio.sleep(0.05)
    if effect.turn in WRITES:
        return call("write", what=f"{run} {WRITES[effect.turn]}")
    return call("read", number=effect.turn) if effect.turn < 10 else call("finish", note=run)


async def main(database: str) -> None:
    rhythm = durable.Rhythm(heartbeat=0.5, dead_after=3.0)
    async with durable.worker(workflow, database=database, backend=Answering(answer), concurrency=20, rhythm=rhythm):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2]))
