"""A program that works on one durable run, and is killed at every point of it: each time a tool or the model begins
and each time a tool has done its work, once. The parent forks a new worker each time, until the run has ended."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from forge import Approved, Calls, Context, SlidingWindowCompact, Workflow, call, durable, tool
from stages.effect import Reply, Send, Settled
from tests.durable.till import Answering

FOLDER, WANTED = Path(sys.argv[1]), set(sys.argv[2:])
"""WANTED are the points at which it is killed; none: at all."""

DATABASE = FOLDER / "runs.db"
PERFORMED, KILLED = FOLDER / "performed", FOLDER / "killed"


def note(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(f"{line}\n")


def lines(file: Path) -> list[str]:
    return file.read_text().split("\n")[:-1] if file.exists() else []


def point(name: str) -> None:
    """Be killed here, if that has not happened yet."""
    if name not in lines(KILLED) and (not WANTED or name in WANTED):
        note(KILLED, name)
        os.kill(os.getpid(), signal.SIGKILL)


def performed(name: str) -> str:
    point(f"{name} begins")
    note(PERFORMED, name)
    point(f"{name} is done")
    return name + " " + "x" * (2_500 if name.startswith("read") else 10)


@tool(effect="read")
def read(page: int) -> str:
    """Read a page."""
    return performed(f"read {page}")


@tool
def write(text: str) -> str:
    """Write."""
    return performed(f"write {text}")


@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return performed(f"pay {amount}")


@tool(idempotent=True)
def finish(note: str) -> str:
    """Finish."""
    return performed(f"finish {note}")


workflow = Workflow(
    "killed",
    tools=[read, write, pay, finish],
    required_steps=["read", "write", "pay"],
    terminal_tool="finish",
    calls=Calls(in_doubt="ask"),
    context=Context(compactor=SlidingWindowCompact(keep_recent=1)),
)

SCRIPT = (
    call("read", page=1),
    call("write", text="a"),
    call("read", page=2),
    call("pay", amount=5),
    call("read", page=3),
    call("write", text="b"),
    call("finish", note="x"),
)


async def answer(effect: Send) -> Reply:
    point(f"turn {effect.turn}")
    return SCRIPT[effect.turn - 1]


async def work() -> None:
    rhythm = durable.Rhythm(heartbeat=0.05, dead_after=0.25)
    async with durable.worker(workflow, database=DATABASE, backend=Answering(answer, 3_000), rhythm=rhythm) as runs:
        run = await runs.start(workflow, "Go.", id="run")
        while not (known := await runs.get(run)).over:
            if (asked := known.question) is None:
                await asyncio.sleep(0.05)
            elif (unsure := asked.in_doubt) is not None:
                name = f"{unsure.name} {next(iter(eval(unsure.arguments).values()))}"  # noqa: S307 - its own arguments
                happened = name in lines(PERFORMED)
                note(FOLDER / "asked", f"{name}: {'it did happen' if happened else 'it did not'}")
                await runs.answer(run, Settled(digest=asked.digest, happened=happened))
            else:
                await runs.answer(run, Approved(digest=asked.digest))
        await runs.export(run, FOLDER / "run.jsonl")


def main() -> None:
    for _ in range(100):
        child = os.fork()
        if not child:
            asyncio.run(work())
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
            break


if __name__ == "__main__":
    main()
