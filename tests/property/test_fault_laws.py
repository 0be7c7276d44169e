"""A hundred faults in twelve runs lose nothing: each ends typed, goes on from where it was, and finishes once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import msgspec
from returns.result import Failure

from forge import resume, run
from forge.callbacks import OnChunk
from forge.connection import Connection, Setup
from forge.interpreters.http import HttpSender
from forge.outcome import Finished, Halted
from forge.runtime.watching import Watching
from stages.effect import Budget
from stages.halt import BackendFailed
from stages.retry import Backoff
from stages.wire.deltas import Delta, Ended, Retry
from tests.faulty import MARK, faulty
from tests.flows import Desk

RUNS = 12


class Faulty:
    """The backend of one run, on a client that all runs share."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._http = HttpSender(client, url, Backoff(first=0.0))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        yield Connection(Setup(model="m", context_tokens=8192), self._http, self._http)


async def to_the_end(backend: Faulty, on_chunk: OnChunk | None) -> tuple[Desk, list[Halted], Finished]:
    """A run, and where it halts the same run again from its last state, until it is finished."""
    desk = Desk()
    watching: Watching = {} if on_chunk is None else {"on_chunk": on_chunk}
    result = await run(desk.workflow, "Go.", backend=backend, **watching)
    halts: list[Halted] = []
    while isinstance(result, Failure):
        halts.append(result.failure())
        state = result.failure().state
        result = await resume(desk.workflow, state, backend=backend, budget=Budget(calls=9), **watching)
    return desk, halts, result.unwrap()


def test_a_hundred_faults_in_twelve_runs_lose_nothing() -> None:
    async def go(url: str) -> tuple[list[tuple[Desk, list[Halted], Finished]], list[list[Delta]], list[int]]:
        told: list[list[Delta]] = [[] for _ in range(RUNS)]
        async with httpx.AsyncClient(timeout=30) as client:
            runs = [
                await to_the_end(Faulty(client, f"{url}/run{n}"), told[n].append if n % 2 else None)
                for n in range(RUNS)
            ]
            counts: list[int] = (await client.get(f"{url}/counts")).json()
            return runs, told, counts

    with faulty() as url:
        runs, told, (faults, leaks) = asyncio.run(go(url))
    assert faults >= 100
    assert sum(len(halts) for _, halts, _ in runs) > 3
    assert leaks == 0
    for desk, halts, finished in runs:
        assert desk.log == ["look a", "write a", "finish"]
        assert finished.value == "done"
        assert MARK not in repr(finished.state.history)
        for halted in halts:
            assert isinstance(halted.halt, BackendFailed)
            assert halted.halt.attempts <= 4
            assert MARK.encode() not in msgspec.json.encode(halted.state)
    # A watcher that forgets at each RETRY, and at the end of each request, has seen each reply once.
    assert all(sum(isinstance(delta, Ended) for delta in deltas) == 3 for deltas in told[1::2])
    assert any(isinstance(delta, Retry) for deltas in told for delta in deltas)
