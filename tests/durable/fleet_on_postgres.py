"""A fleet of workers on a real Postgres, for `make postgres`: workers are killed (-9) at random, the server restarted.

Every run ends once, no write takes effect twice, none is lost, and the order is kept. The same while the server is away
for a minute.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from sqlalchemy.exc import DBAPIError

from forge import Scripted, durable
from forge.agent import Agent
from forge.durable import Runs
from forge.errors import RunError
from stages.effect import Settled
from tests.durable import fleet
from tests.durable.test_runs import list_in_order, lose_to_a_cancellation, refuse_two_ways_on
from tests.memory.stores_on_postgres import serving

ROOT = Path(__file__).parents[2]
RUNS = int(os.environ.get("FLEET_RUNS", "60"))
EVERY = float(os.environ.get("FLEET_EVERY", "1"))
"""Seconds between kills: more where a worker takes longer to start."""
AWAY = 60.0
"""Seconds without a database."""


class Worker:
    """A worker process."""

    def __init__(self, folder: Path, address: str) -> None:
        self._said = folder / uuid4().hex
        command = [sys.executable, "-m", "tests.durable.fleet", str(folder), address]
        with (folder / "errors").open("ab") as errors, self._said.open("wb") as said:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=errors)

    @property
    def ready(self) -> bool:
        """Whether it has begun to work: one that is killed before proves nothing."""
        return self._said.stat().st_size > 0

    def kill(self) -> None:
        """Kill it (-9)."""
        self.process.kill()
        self.process.wait()


def written(folder: Path) -> list[str]:
    file = folder / "performed"
    return file.read_text().splitlines() if file.exists() else []


async def answered(runs: Runs, folder: Path, seen: Counter[str]) -> int:
    """Answer what waits, by what the file says; how many runs have not ended."""
    left, cursor = 0, ""
    while True:
        page = await runs.list(cursor=cursor, most=500)
        for run in page.runs:
            left += not run.over
            if run.state != "waiting":
                continue
            question = (await runs.get(run.id)).question
            if question is None or question.in_doubt is None:
                continue
            what = msgspec.json.decode(question.in_doubt.arguments, type=dict[str, str])["what"]
            happened = what in written(folder)
            await runs.answer(run.id, Settled(digest=question.digest, happened=happened))
            seen["happened" if happened else "did not happen"] += 1
        if not page.cursor:
            return left
        cursor = page.cursor


async def tortured(folder: Path, address: str, restart: Callable[[float], None]) -> tuple[Counter[str], float]:
    chance, seen = random.Random(7), Counter[str]()  # noqa: S311 - which worker is killed
    workers = [Worker(folder, address) for _ in range(3)]
    begun = time.monotonic()
    try:
        async with durable.client(address) as runs:
            for number in range(RUNS):
                await runs.start(fleet.workflow, f"Do run-{number}", id=f"run-{number}")
            while await answered(runs, folder, seen):
                await asyncio.sleep(EVERY * chance.uniform(0.5, 1.5))
                if time.monotonic() - begun > 10 * RUNS * EVERY:
                    raise AssertionError(f"after {10 * RUNS * EVERY:.0f} seconds: {seen}")
                victim = chance.randrange(3)
                if not workers[victim].ready:
                    continue
                if chance.random() < 0.2 and not seen[f"paused {victim}"]:
                    # Declared dead while it lives: it is refused when it goes on.
                    workers[victim].process.send_signal(signal.SIGSTOP)
                    await asyncio.sleep(4.5)
                    workers[victim].process.send_signal(signal.SIGCONT)
                    # Whoever says that a write did not happen must know that nobody is still about to perform it.
                    await asyncio.sleep(2)
                    seen[f"paused {victim}"] += 1
                    seen["pauses"] += 1
                    continue
                if seen["kills"] in {6, 12} and seen["restarts"] < seen["kills"] // 6:
                    await asyncio.to_thread(restart, 0.0)
                    seen["restarts"] += 1
                    continue
                workers[victim].kill()
                seen["kills"] += 1
                workers[victim] = Worker(folder, address)
            for number in range(RUNS):
                ended = (await runs.result(f"run-{number}")).unwrap()
                assert ended.value == f"run-{number}"
    finally:
        for worker in workers:
            worker.kill()
    return seen, time.monotonic() - begun


def refuse_losses(folder: Path, count: int) -> None:
    """AssertionError if a write of so many runs was lost, took effect twice, or out of order."""
    effects = written(folder)
    wanted = [f"run-{number} {what}" for number in range(count) for what in "abc"]
    assert Counter(effects) == Counter(wanted)
    for number in range(count):
        assert [line[-1] for line in effects if line.startswith(f"run-{number} ")] == ["a", "b", "c"]


def test_a_fleet_outlives_its_machines_and_its_database(tmp_path: Path) -> None:
    with serving() as (address, restart):
        seen, took = asyncio.run(tortured(tmp_path, address, restart))
    refuse_losses(tmp_path, RUNS)
    print(f"{RUNS} runs in {took:.0f} s: {dict(seen)}")


def test_a_fleet_outlives_a_database_that_is_away(tmp_path: Path) -> None:
    asyncio.run(outlive_an_absence(tmp_path))  # longer than the minute that a coroutine may take as a test


async def outlive_an_absence(tmp_path: Path) -> None:
    count, seen = 30, Counter[str]()
    with serving() as (address, restart):
        workers = [Worker(tmp_path, address) for _ in range(2)]
        try:
            async with durable.client(address) as runs:
                for number in range(count):
                    await runs.start(fleet.workflow, f"Do run-{number}", id=f"run-{number}")
                while len(written(tmp_path)) < count:  # noqa: ASYNC110 - workers write to a file
                    await asyncio.sleep(0.1)
            begun = time.monotonic()
            await asyncio.to_thread(restart, AWAY)
            back = time.monotonic()
            async with durable.client(address) as runs:
                while await answered(runs, tmp_path, seen):  # noqa: ASYNC110 - workers end runs
                    await asyncio.sleep(0.2)
                for number in range(count):
                    assert (await runs.result(f"run-{number}")).unwrap().value == f"run-{number}"
        finally:
            for worker in workers:
                worker.kill()
    refuse_losses(tmp_path, count)
    print(f"away for {back - begun:.0f} s, all {count} runs ended {time.monotonic() - back:.0f} s later: {dict(seen)}")


async def test_a_start_does_not_wait_for_a_database_that_is_away() -> None:
    with serving() as (address, restart):
        async with durable.client(address) as runs:
            agent = Agent("shop", backend=Scripted([]))
            restarting, refused = asyncio.ensure_future(asyncio.to_thread(restart, 5.0)), 0
            while not restarting.done():
                try:
                    await runs.start(agent, "Hello?", id="one")
                except DBAPIError:
                    refused += 1
            assert refused
            assert await runs.start(agent, "Hello?", id="one") == "one"


async def test_a_halted_run_goes_on_once() -> None:
    with serving() as (address, _):
        await refuse_two_ways_on(address)


async def test_a_late_retry_undoes_no_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as (address, _):
        await lose_to_a_cancellation(address, monkeypatch)


async def test_runs_are_listed_newest_first() -> None:
    with serving() as (address, _):
        await list_in_order(address)


async def test_a_conversation_and_the_list_are_found(tmp_path: Path) -> None:
    agent = Agent("shop", backend=Scripted(["Hello.", "Yes.", "No."]))
    with serving() as (address, _):
        async with durable.worker(agent, database=address) as runs:
            first = await runs.start(agent, "Hello?", conversation="ann", owner="ann")
            await runs.result(first)
            both = [runs.start(agent, what, conversation="ann", owner="ann") for what in ("This?", "That?")]
            started = await asyncio.gather(*both, return_exceptions=True)
            (second,) = (one for one in started if isinstance(one, str))
            assert [type(one) for one in started if not isinstance(one, str)] == [RunError]
            await runs.result(second)
        async with durable.worker(agent, database=address, backend=Scripted(["Bye."])) as runs:
            third = await runs.start(agent, "Bye.", conversation="ann", owner="ann")
            await runs.result(third)
            page = await runs.list(conversation="ann", owner="ann", states=["completed"])
            assert [run.id for run in page.runs] == [third, second, first]
            assert (await runs.list(states=["queued", "running", "waiting", "halted", "failed"])).runs == ()
            assert (await runs.list(conversation="ann", owner="bob")).runs == ()
