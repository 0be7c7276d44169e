"""What durable runs cost: `python -m benchmarks.durable [postgresql://…]`, by default SQLite in a new folder.

The model answers at once, so that all of the time is forge's, DBOS's and the database's.
"""

import asyncio
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp

import sqlalchemy as sa

from forge import Limits, Workflow, call, durable, tool
from forge.connection import Connection, Setup
from forge.durable import Runs
from stages.effect import Replied, Send


@tool(effect="read")
def look(number: int) -> str:
    """Look something up."""
    return f"result {number} " + "x" * 300


@tool
def write(number: int) -> str:
    """Write something."""
    return f"written {number}"


@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(idempotent=True)
def finish(note: str) -> str:
    """Finish."""
    return note


LIMITS = Limits(max_iterations=300)
reads = Workflow("reads", tools=[look, finish], required_steps=["look"], terminal_tool="finish", limits=LIMITS)
writes = Workflow("writes", tools=[write, finish], required_steps=["write"], terminal_tool="finish", limits=LIMITS)
waits = Workflow("waits", tools=[pay, finish], required_steps=["pay"], terminal_tool="finish", limits=LIMITS)


class Quick:
    """Calls the tool so many times, then ends."""

    def __init__(self, name: str, turns: int) -> None:
        self._name, self._turns = name, turns

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """A connection that answers by the number of the turn."""

        async def send(effect: Send) -> Replied:
            if effect.turn > self._turns:
                return Replied(reply=call("finish", note="done"))
            argument = {"amount" if self._name == "pay" else "number": effect.turn}
            return Replied(reply=call(self._name, **argument))

        yield Connection(Setup(context_tokens=500_000), send)


async def one_run(workflow: Workflow, name: str, turns: int, database: str) -> None:
    """A run by itself: milliseconds and bytes an effect."""
    async with durable.worker(workflow, database=database, backend=Quick(name, turns)) as runs:
        size = _size(database)
        run = await runs.start(workflow, "Go.")
        while (await runs.get(run)).state == "queued":  # noqa: ASYNC110 - what is measured begins when it is taken
            await asyncio.sleep(0.002)
        begun = time.perf_counter()
        await runs.result(run)
        took = time.perf_counter() - begun
        file = Path(mkdtemp()) / "run.jsonl"
        await runs.export(run, file)
        effects = len((await runs.journal(run)).entries)
        known = await runs.get(run)
        rows, stored = await _stored(runs, run, known.segment)
        print(
            f"{name}, {turns} turns: {effects} effects, {1000 * took / effects:.1f} ms and {rows / effects:.2f} rows "
            f"an effect, {stored / effects:.0f} bytes an effect ({stored / file.stat().st_size:.2f} of the journal), "
            f"file +{(_size(database) - size) / 1024:.0f} KiB"
        )


async def _stored(runs: Runs, run: str, last: int) -> tuple[int, int]:
    """Rows of steps, and bytes of what they and the segments hold."""
    database = runs._database  # noqa: SLF001 - a measurement of what is inside
    rows = [row for number in range(last + 1) for row in database.steps(f"{run}:{number}")]
    inputs = sum(len(database.input_of(f"{run}:{number}")) for number in range(last + 1))
    outputs = sum(len(row.output or "") for row in database.segments([f"{run}:{n}" for n in range(last + 1)]).values())
    return len(rows), sum(len(row.output or "") for row in rows) + inputs + outputs


async def many(count: int, turns: int, database: str) -> None:
    """Many runs at once: effects a second; then a page of the list of all."""
    async with durable.worker(reads, database=database, backend=Quick("look", turns), concurrency=50) as runs:
        begun = time.perf_counter()
        started = [await runs.start(reads, "Go.") for _ in range(count)]
        entered = time.perf_counter() - begun
        for run in started:
            await runs.result(run)
        took = time.perf_counter() - begun
        effects = count * (2 * turns + 2)
        print(f"{count} runs of {turns} turns: {effects / took:.0f} effects/s; start {1000 * entered / count:.1f} ms")


@contextmanager
def workers(count: int, database: str) -> Iterator[list[float]]:
    """Worker processes of their own, ready; at the end, the seconds of processor time that each took."""
    command = [sys.executable, "-m", "benchmarks.durable", "--worker", database]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(count)]  # noqa: S603
    took: list[float] = []
    try:
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()
        yield took
    finally:
        for one in started:
            one.terminate()
        took += [float(one.communicate()[0]) for one in started]


async def work(database: str) -> None:
    """Work on runs of reads until a signal comes; then say how much processor time that took."""
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    async with durable.worker(reads, database=database, backend=Quick("look", 10), concurrency=50):
        begun = time.process_time()
        print("ready", flush=True)
        await done.wait()
        print(time.process_time() - begun, flush=True)


async def fleet(count: int, runs: int, database: str) -> None:
    """Effects a second of several workers on one database."""
    with workers(count, database) as processor:
        async with durable.client(database) as client:
            begun = time.perf_counter()
            started = [await client.start(reads, "Go.") for _ in range(runs)]
            for run in started:
                await client.result(run)
            took = time.perf_counter() - begun
    effects = 22 * runs
    each = " + ".join(f"{1000 * one / effects:.1f}" for one in processor)
    print(f"{count} worker processes: {effects} effects, {effects / took:.0f} a second; processor: {each} ms an effect")


async def ended(count: int, database: str) -> None:
    """Pages of very many ended runs: rows of one that has ended, copied."""
    async with durable.worker(reads, database=database, backend=Quick("look", 1)) as runs:
        run = await runs.start(reads, "Go.")
        await runs.result(run)
        await asyncio.to_thread(_copied, runs, run, count)
        page = await runs.list(most=50)
        for name in ("the first", "the second", "the third"):
            begun = time.perf_counter()
            page = await runs.list(most=50, cursor=page.cursor)
            print(f"{count} ended runs: {name} page in {1000 * (time.perf_counter() - begun):.0f} ms")
        row = (await runs.list(most=1)).runs[0]
        middle = datetime.fromisoformat(row.begun).timestamp() - count / 2
        begun = time.perf_counter()
        assert len((await runs.list(most=50, cursor=f"{middle:.3f}/x")).runs) == 50
        print(f"{count} ended runs: a page in the middle in {1000 * (time.perf_counter() - begun):.0f} ms")


def _copied(runs: Runs, run: str, count: int) -> None:
    database = runs._database  # noqa: SLF001 - the rows that so many runs would have made, a second apart
    schema = None if database.sqlite else "dbos"
    numbers = f"WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})"  # noqa: S608
    changed = {"workflow_uuid": "'copy-' || n || ':0'", "created_at": "created_at - 1000 * n"}
    with database.engine.begin() as connection:
        for table in ("workflow_status", "workflow_input", "workflow_output"):
            columns = [column["name"] for column in sa.inspect(connection).get_columns(table, schema)]
            where = f"{schema}.{table}" if schema else table
            taken = ", ".join(changed.get(name, name) for name in columns)
            connection.exec_driver_sql(
                f"{numbers} INSERT INTO {where} ({', '.join(columns)}) "  # noqa: S608 - names of columns
                f"SELECT {taken} FROM {where}, n WHERE workflow_uuid = '{run}:0'"
            )


async def waiting(count: int, database: str) -> None:
    """Runs that wait for a person: memory and processor, with and without."""
    async with durable.worker(waits, database=database, backend=Quick("pay", 1), concurrency=50) as runs:
        before, memory = await _idle(), _memory()
        started = [await runs.start(waits, "Go.") for _ in range(count)]
        for run in started:
            await runs.wait(run)
    async with durable.worker(waits, database=database, backend=Quick("pay", 1)) as runs:
        after = await _idle()
        page = await runs.list(most=50)
        begun = time.perf_counter()
        page = await runs.list(most=50)
        listed = time.perf_counter() - begun
        print(
            f"{count} waiting: processor {before:.1%} → {after:.1%} of a core, memory {memory} → {_memory()} MB; "
            f"a page of {len(page.runs)} in {1000 * listed:.0f} ms"
        )


async def _idle(seconds: float = 5.0) -> float:
    begun = time.process_time()
    await asyncio.sleep(seconds)
    return (time.process_time() - begun) / seconds


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _size(database: str) -> int:
    return sum(file.stat().st_size for file in Path(database).parent.glob(f"{Path(database).name}*"))


async def main(database: str) -> None:
    """All measurements."""
    for turns in (25, 50, 100, 200):
        await one_run(reads, "look", turns, database)
    await one_run(writes, "write", 100, database)
    await many(100, 10, database)
    for count in (1, 2, 3):
        await fleet(count, 100, database)
    await waiting(1000, database)
    await ended(10_000, database)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--worker", where]:
            asyncio.run(work(where))
        case given:
            asyncio.run(main(given[0] if given else str(Path(mkdtemp()) / "runs.db")))
