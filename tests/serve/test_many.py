"""Many clients: no event is lost or doubled, whoever reconnects or stops reading."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx

from forge import Scripted, Workflow, call, durable
from forge.durable import Run
from forge.serve.following import Follower, Following, Followings
from stages.effect import Fault, Reply
from stages.events import Event, ModelFailed, ModelReplied, RunHalted, Stamped, TurnStarted
from stages.halt import BackendFailed
from stages.wire.deltas import Delta, TextDelta
from tests.durable.till import finish, get_order
from tests.serve.served import serving

COUNT = 20
"""Clients; three hundred were tried."""

WANTED = {"workflow": "quick", "variables": {"who": "quick"}}


async def told(client: httpx.AsyncClient, where: str, breaks: int = 0) -> list[str]:
    """The ids of a run's events until it ends, with so many breaks of the connection on the way.

    The last ten come each after an event of the run, those before as soon as the server has told where the run is.
    """
    found: list[str] = []
    while True:
        headers = {"last-event-id": found[-1]} if found else {}
        async with client.stream("GET", f"{where}/events", headers=headers) as stream:
            if stream.status_code == 204:
                return found
            assert stream.status_code == 200, await stream.aread()
            async for line in stream.aiter_lines():
                if line.startswith("id: "):
                    found.append(line[4:])
                    if 0 < breaks <= 10:
                        breaks -= 1
                        break
                if line.startswith("data: ") and breaks > 10:
                    breaks -= 1
                    break
                if line.startswith("data: "):
                    data: Any = json.loads(line[6:])
                    if data.get("state") == "completed":
                        return found


def test_a_reader_reconnects_a_hundred_times_and_another_stops_reading(tmp_path: Path) -> None:
    with serving(tmp_path) as running:

        async def read() -> None:
            async with httpx.AsyncClient(base_url=running.url, timeout=60, trust_env=False) as client:
                wanted = {**WANTED, "message": "hang on", "background": True}
                where = (await client.post("/v1/runs", json=wanted)).headers["location"]
                host, port = running.url.removeprefix("http://").split(":")
                _, stalled = await asyncio.open_connection(host, int(port))
                stalled.write(f"GET {where}/events HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())  # and reads nothing
                readers = [asyncio.ensure_future(told(client, where, breaks)) for breaks in (0, 100)]
                running.release()
                plain, broken = await asyncio.gather(*readers)
                assert broken == plain
                assert len({*plain}) == len(plain) > 5
                stalled.close()
                await stalled.wait_closed()

        asyncio.run(read())


def test_a_reader_that_does_not_read_holds_little() -> None:
    """However long the run: it is given 64 KiB, and more when it has taken them."""
    run = Run(id="run", workflow="quick", state="running", begun="", updated="")
    followed = Following(run)
    followed.told = [((number, 1), b"x" * 10_000) for number in range(1000)]
    reading, sizes = Follower(followed, (0, 1)), list[int]()
    while reading.more:
        sizes.append(len(reading.take()))
    assert sum(sizes) > 9_990_000
    assert max(sizes) < 80_000


async def test_who_joins_the_readers_of_a_halted_run_hears_that_it_is_retried(tmp_path: Path) -> None:
    away = Fault(kind="unreachable", detail="nobody is there")
    model = Scripted([call("get_order", order_id="A"), away, call("finish", note="x")])
    flow = Workflow("flow", tools=[get_order, finish], terminal_tool="finish")
    followings = Followings(asyncio.Event())
    database = tmp_path / "runs.db"
    async with (
        durable.worker(flow, database=database, backend=model, on_event=followings.heard) as runs,
        followings.watching(runs),
    ):
        run = await runs.start(flow, "Look at A")
        async with followings.of(await runs.get(run), flow) as first:
            while not first.over:
                await first.changed.wait()
            slow = Follower(first, None)
            assert first.run.state == "halted"
            await runs.retry(run)
            async with followings.of(await runs.get(run), flow) as joined:
                assert joined is first
                while not joined.over:
                    await joined.changed.wait()
                assert joined.run.state == "completed"
            assert b"event: halted" in (told := slow.take())
            assert told.index(b"event: finished") > told.index(b"event: halted")
            assert slow.done


async def test_the_end_of_a_run_is_read_again_for_who_joins_while_it_is_read(tmp_path: Path) -> None:
    model = Scripted([Fault(kind="unreachable", detail="nobody is there")])
    flow = Workflow("flow", tools=[get_order, finish], terminal_tool="finish")
    followings = Followings(asyncio.Event())
    async with durable.worker(flow, database=tmp_path / "runs.db", backend=model) as runs:
        run = await runs.start(flow, "Look at A")
        await runs.result(run)
        followings._runs = runs
        halted = await runs.get(run)
        async with followings.of(halted, flow) as first:
            reading = asyncio.ensure_future(followings._refresh(first, ("", "")))
            await asyncio.sleep(0)
            async with followings.of(halted, flow):
                await reading
                assert not first.over
                assert first.head is None
            await followings._refresh(first, ("", ""))
            assert first.over


def test_what_a_failed_call_told_is_dropped_and_what_a_reply_told_is_shown_until_it_is_recorded() -> None:
    followings = Followings(asyncio.Event())
    followed = Following(Run(id="run", workflow="flow", state="running", begun="", updated=""))
    followings._followed["run"] = followed
    halt = BackendFailed(fault=Fault(kind="unreachable", detail="nobody is there"), attempts=1)

    def stamped(event: Event | Delta, *sequence: int) -> Stamped:
        effects, number = sequence
        return Stamped(run="run", agent="flow", sequence=(effects, number), event=event)

    started = TurnStarted(turn=1, prompt_tokens=1, context_tokens=0, calls_left=9)
    followed.add([stamped(started, 2, 0)])
    reading = Follower(followed, (2, 0))
    followings.heard(stamped(TextDelta(text="half"), 2, 0))
    assert b"half" in reading.take()
    ends = [stamped(ModelFailed(turn=1, problem="away"), 2, 1), stamped(RunHalted(halt=halt), 2, 2)]
    for one in ends:
        followings.heard(one)
    followed.add(ends)
    assert b"half" not in (told := Follower(followed, None).take())
    assert b"event: halted" in told
    # It is retried: the same reader hears all of the reply, also when the next turn has begun before it is recorded.
    followings.heard(stamped(TextDelta(text="whole"), 2, 2))
    reply = ModelReplied(turn=1, reply=Reply(text="whole"))
    for one in (stamped(reply, 3, 0), stamped(started, 3, 1)):
        followings.heard(one)
    assert b"whole" in reading.take()
    assert reading.take() == b""


def test_many_clients_at_once(tmp_path: Path) -> None:
    with serving(tmp_path) as running:

        async def one(client: httpx.AsyncClient, number: int) -> None:
            wanted = {**WANTED, "message": f"Note {number}", "background": True}
            answer = await client.post("/v1/runs", json=wanted)
            assert answer.status_code == 202, answer.text
            found = await told(client, answer.headers["location"])
            assert len({*found}) == len(found) > 5
            run = (await client.get(answer.headers["location"])).json()
            assert run["outcome"]["value"] == f"done {number}"

        async def all_of_them() -> None:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=running.url, timeout=300, limits=limits, trust_env=False) as client:
                await asyncio.gather(*(one(client, number) for number in range(COUNT)))

        asyncio.run(all_of_them())
