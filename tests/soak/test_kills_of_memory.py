"""One memory file under kill -9: two processes with two stores each, 2,000 saves a process, 260 kills among them."""

import asyncio
import multiprocessing
import random
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from forge.agent.memory import Session, SQLiteStore
from stages.message import User

SAVES, KILLS = 2_000, 260

_processes = multiprocessing.get_context("forkserver")  # a start costs a fork instead of a second of imports
_processes.set_forkserver_preload([__name__])


def save(path: Path, life: str, said: Connection) -> None:
    """Save for ever, through a store that stays and through new ones, and say each save that returned."""

    async def add(name: str, *, anew: bool) -> None:
        store, number = SQLiteStore(path, wait=60), 0
        while True:
            store = SQLiteStore(path, wait=60) if anew else store
            await Session(store, name).add_message(User(text=f"{number} {'x' * 3000}"))
            said.send((name, number))
            number += 1

    async def both() -> None:
        await asyncio.gather(add(f"{life}, one store", anew=False), add(f"{life}, new stores", anew=True))

    asyncio.run(both())


def saved(path: Path, who: str, quotas: list[int]) -> list[tuple[str, int]]:
    """The saves that returned in processes that were killed after so many each."""
    acknowledged = []
    for number, quota in enumerate(quotas):
        listening, telling = _processes.Pipe(duplex=False)
        process = _processes.Process(target=save, args=(path, f"{who} {number}", telling))
        process.start()
        telling.close()
        for _ in range(quota):
            assert listening.poll(120), f"{who}: nothing was saved in two minutes"
            acknowledged.append(listening.recv())
        process.kill()
        with suppress(EOFError):
            while True:
                acknowledged.append(listening.recv())
        process.join()
        listening.close()
    return acknowledged


def drawn(seed: str) -> list[int]:
    """How many saves each process may make before its kill: as many in all as there must be."""
    cuts = sorted(random.Random(seed).sample(range(1, SAVES), KILLS // 2 - 1))  # noqa: S311
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, SAVES], strict=True)]


def test_every_save_that_returned_is_there(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with ThreadPoolExecutor() as threads:
        each = threads.map(lambda who: saved(path, who, drawn(who)), ("left", "right"))
        acknowledged = [one for some in each for one in some]

    async def found() -> set[tuple[str, int]]:
        store = SQLiteStore(path)
        return {
            (one.name, int(message.text.split()[0]))
            for one in await store.sessions()
            for message in await Session(store, one.name).get_messages()
        }

    there = asyncio.run(found())
    lost = set(acknowledged) - there
    print(f"{len(acknowledged)} saves returned, {len(there)} are there, {len(lost)} are lost; {KILLS} kills")
    assert len(acknowledged) >= 2 * SAVES
    assert not lost
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
