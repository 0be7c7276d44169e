"""A durable run that is cancelled from another process while it does something, and whose worker is then killed at one
of its commits: FOLDER, what it does (`turn`, `read`, `write` or `ask`), and at which commit after the cancellation."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

import sqlalchemy as sa

from forge import Calls, Workflow, call, durable, tool
from stages.effect import Reply, Send
from stages.message import Assistant, Tool
from tests.durable.till import Answering

FOLDER, POINT, COMMIT = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
DATABASE = FOLDER / "runs.db"
REACHED, CANCELLED, PERFORMED, ENDED = (FOLDER / name for name in ("reached", "cancelled", "performed", "ended"))


async def point(name: str) -> None:
    """Stay here, if this is where the run is cancelled."""
    if name == POINT:
        REACHED.touch()
        await asyncio.Event().wait()


@tool(effect="read")
async def read(page: int) -> str:
    """Read a page."""
    await point("read")
    return f"page {page}"


@tool
async def write(text: str) -> str:
    """Write."""
    with PERFORMED.open("a") as file:
        file.write(f"{text}\n")
    await point("write")
    return "written"


@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    raise AssertionError("a cancelled run has paid")


workflow = Workflow(
    "cancelled",
    tools=[read, write, pay],
    required_steps=["read", "write"],
    terminal_tool="pay",
    calls=Calls(in_doubt="ask"),
)
SCRIPT = (call("read", page=1), call("write", text="a"), call("pay", amount=5))


async def answer(effect: Send) -> Reply:
    if effect.turn == 2:
        await point("turn")
    return SCRIPT[effect.turn - 1]


async def work(*, killed: bool) -> None:
    """Work on the run until it has ended."""
    commits = 0

    def committing(_: sa.Connection) -> None:
        nonlocal commits
        if CANCELLED.exists():
            commits += 1
            if commits == COMMIT:
                os.kill(os.getpid(), signal.SIGKILL)

    if killed:
        sa.event.listen(sa.Engine, "commit", committing)
    # The first seldom counts, so that nearly all its commits are steps; the second soon sees that it is dead.
    rhythm = durable.Rhythm(heartbeat=5.0) if killed else durable.Rhythm(heartbeat=0.05, dead_after=0.25)
    async with durable.worker(workflow, database=DATABASE, backend=Answering(answer), rhythm=rhythm) as runs:
        run = await runs.start(workflow, "Go.", id="run")
        while not (known := await runs.get(run)).over:
            if known.question is not None and known.question.in_doubt is None:
                REACHED.touch()
            await asyncio.sleep(0.02)
        halted = (await runs.result(run)).failure()
        said = halted.state.history
        calls = [one.id for message in said if isinstance(message, Assistant) for one in message.calls]
        answers = [message.call_id for message in said if isinstance(message, Tool)]
        ENDED.write_text(f"{type(halted.halt).__name__}, {len(set(calls) - set(answers))} calls without an answer")


async def cancel() -> None:
    """Cancel the run once it is there."""
    while not REACHED.exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    async with durable.client(DATABASE) as runs:
        CANCELLED.touch()
        await runs.cancel("run")


def forked(act: Callable[[], Coroutine[object, object, None]]) -> int:
    child = os.fork()
    if not child:
        asyncio.run(act())
        os._exit(0)
    return child


def main() -> None:
    worker, canceller = forked(lambda: work(killed=True)), forked(cancel)
    ended = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    os.waitpid(canceller, 0)
    print("killed" if ended == -signal.SIGKILL else "ended")
    if ended == -signal.SIGKILL:
        os.waitpid(forked(lambda: work(killed=False)), 0)


if __name__ == "__main__":
    main()
