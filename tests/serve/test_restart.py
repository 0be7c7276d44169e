"""A server in a process of its own, killed and started again: what was under way goes on, and no event is lost."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.served import events_of, serving
from tests.serve.test_routes import QUICK, problem


@contextmanager
def server(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", httpx.Client]]:
    words = [sys.executable, "-m", "tests.serve.restarted", str(folder)]
    with subprocess.Popen(words, cwd=Path(__file__).parents[2], stdout=-1, text=True) as running:
        assert running.stdout is not None
        try:
            url = running.stdout.readline().strip()
            with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
                yield running, client
        finally:
            running.kill()


def until(told: Iterator[dict[str, Any]], kind: str, found: list[str]) -> dict[str, Any]:
    """The next event of that kind; the ids on the way are noted."""
    for event in told:
        if event["id"]:
            found.append(event["id"])
        if event["type"] == kind:
            return event
    raise AssertionError(kind)


def test_a_run_outlives_a_killed_server_and_its_readers_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    ids: list[str] = []
    with server(tmp_path) as (running, client):
        begun = client.post("/v1/runs", json={"workflow": "flow", "message": "Write a line", "background": True})
        where = f"/v1/runs/{begun.json()['id']}"
        with client.stream("GET", f"{where}/events") as stream:
            told = events_of(stream.iter_lines())
            until(told, "calls_accepted", ids)
            until(told, "calls_accepted", ids)  # of what writes
            while not ((tmp_path / "written").exists() and (tmp_path / "written").read_text()):
                pass
            running.kill()
    (tmp_path / "hold").unlink()
    with server(tmp_path) as (running, client):
        with client.stream("GET", f"{where}/events", headers={"last-event-id": ids[-1]}) as stream:
            told = events_of(stream.iter_lines())
            until(told, "approval_asked", ids)
            while (state := until(told, "state", ids)["run"])["state"] != "waiting":
                pass
            assert state["question"]["in_doubt"]["name"] == "write"
            said = {"type": "settle", "digest": state["question"]["digest"], "happened": True, "result": "written"}
            assert client.post(f"{where}/answers", json=said).status_code == 202
            until(told, "finished", ids)
            assert until(told, "state", ids)["run"]["outcome"]["value"] == "all done"
            assert list(told) == []
        assert (tmp_path / "written").read_text() == "a line\n"
        with client.stream("GET", f"{where}/events") as stream:
            again = [event["id"] for event in events_of(stream.iter_lines()) if event["id"]]
        assert again == ids
        assert len({*ids}) == len(ids)
        # A server that stops lets its readers go: they end without an end, and come back elsewhere.
        (tmp_path / "hold").touch()
        wanted = {"workflow": "flow", "message": "Write a line", "stream": True}
        with client.stream("POST", "/v1/runs", json=wanted) as stream:
            told = events_of(stream.iter_lines())
            until(told, "calls_accepted", [])
            running.terminate()
            assert "finished" not in {event["type"] for event in told}
        assert running.wait() == 0


@pytest.mark.soak
def test_two_servers_share_runs_and_one_takes_over_those_of_the_other(tmp_path: Path) -> None:
    wanted = {"workflow": "flow", "message": "Write a line", "background": True}

    def lines() -> int:
        file = tmp_path / "written"
        return file.read_text().count("\n") if file.exists() else 0

    def ended(client: httpx.Client, run: str) -> bool:
        """Whether it asked about its write on the way to its end; read at a server that may not perform it."""
        asked = False
        with client.stream("GET", f"/v1/runs/{run}/events") as stream:
            ids: list[str] = []
            told = events_of(stream.iter_lines())
            while (state := until(told, "state", ids)["run"])["state"] != "completed":
                if state["state"] == "waiting":
                    said = {"type": "settle", "digest": state["question"]["digest"], "happened": True}
                    assert client.post(f"/v1/runs/{run}/answers", json=said).status_code == 202
                    asked = True
            assert len({*ids}) == len(ids)
        return asked

    (tmp_path / "hold").touch()
    with server(tmp_path) as (first, one):
        held = [one.post("/v1/runs", json=wanted).json()["id"] for _ in range(2)]
        while lines() < 2:
            pass
        (tmp_path / "hold").unlink()
        with server(tmp_path) as (_, other):
            shared = [at.post("/v1/runs", json=wanted).json()["id"] for at in (one, other) * 3]
            assert [ended(at, run) for at, run in zip((other, one) * 3, shared, strict=True)] == [False] * 6
            assert lines() == 8
            first.kill()
            assert [ended(other, run) for run in held] == [True, True]
            assert lines() == 8


def test_a_run_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    with serving(tmp_path) as running, running.client() as client:
        wanted, key = {**QUICK, "message": "hang on"}, {"idempotency-key": "one"}
        with client.stream("POST", "/v1/runs", json={**wanted, "stream": True}, headers=key) as stream:
            until(events_of(stream.iter_lines()), "text", [])  # its first step is recorded
            run = stream.headers["location"].removeprefix("/v1/runs/")
        with closing(sqlite3.connect(tmp_path / "runs.db")) as database, database:
            database.execute("UPDATE operation_outputs SET output = 'damaged' WHERE workflow_uuid LIKE ?", (f"{run}%",))
        assert "cannot be read" in problem(client.post("/v1/runs", json=wanted, headers=key), 500, "internal")
        running.release()


def test_a_database_that_fails_is_told_without_what_a_run_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(tmp_path) as running, running.client() as client:
        run = client.post("/v1/runs", json={**QUICK, "message": "hang on", "background": True}).json()["id"]
        with running.server.runs._database.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE forge_messages")
            connection.exec_driver_sql("DROP TABLE forge_executors")  # without it, the worker can leave all the same
        refused = client.post(f"/v1/runs/{run}/messages", json={"text": "my secret"})
        assert "does not answer" in problem(refused, 503, "unavailable")
        assert refused.headers["retry-after"] == "5"
        running.release()
    assert "no such table: forge_messages" in caplog.text
    assert "my secret" not in caplog.text


def test_a_reader_who_joins_in_the_middle_of_a_reply_gets_all_of_it(tmp_path: Path) -> None:
    with serving(tmp_path) as running, running.client() as client:
        run = client.post("/v1/runs", json={**QUICK, "message": "hang on", "background": True}).json()["id"]
        running.model.halfway.wait()  # half of the reply is written, and nobody has read the run so far
        for _ in range(2):
            with client.stream("GET", f"/v1/runs/{run}/events") as stream:
                assert until(events_of(stream.iter_lines()), "text", [])["text"] == "I see to it."
        running.release()
        while client.get(f"/v1/runs/{run}").json()["state"] != "completed":
            pass
        with client.stream("GET", f"/v1/runs/{run}/events") as stream:
            told = events_of(stream.iter_lines())
            assert "text" not in [event["type"] for event in told]  # the recorded reply has it
        assert running.server._followings._live == {}
        assert running.server._followings._size == 0


def test_a_run_that_lost_its_model_is_retried_and_read_on(tmp_path: Path) -> None:
    with serving(tmp_path) as running, running.client() as client:
        run = client.post("/v1/runs", json={**QUICK, "message": "Go away"}).json()
        where, ids = f"/v1/runs/{run['id']}", list[str]()
        assert (run["state"], run["reason"], run["retriable"]) == ("halted", "backend_failed", True)
        with client.stream("GET", f"{where}/events") as stream:
            until(events_of(stream.iter_lines()), "halted", ids)
        after = {"last-event-id": ids[-1]}
        assert client.get(f"{where}/events", headers=after).status_code == 204
        running.release()
        assert client.post(f"{where}/retry").status_code == 202
        with client.stream("GET", f"{where}/events", headers=after) as stream:
            told = events_of(stream.iter_lines())
            until(told, "finished", ids)
            done = until(told, "state", ids)["run"]
            assert (done["state"], done["retriable"]) == ("completed", False)
        with client.stream("GET", f"{where}/events") as stream:
            assert [event["id"] for event in events_of(stream.iter_lines()) if event["id"]] == ids
        assert "the run " in problem(client.post(f"{where}/retry"), 409, "wrong-state")


def test_a_reader_who_comes_while_the_server_stops_is_told_so(tmp_path: Path) -> None:
    """The last events of the run have not been read yet: 204 would tell a browser that there are none."""
    with serving(tmp_path) as running, running.client() as client:
        run = client.post("/v1/runs", json=QUICK).json()["id"]
        followings = running.server._followings

        async def stop() -> None:
            for _ in range(16):
                await followings._reading.acquire()
            followings.closing = asyncio.Event()  # not the server's own: it would be gone before the reader comes
            followings.closing.set()

        asyncio.run_coroutine_threadsafe(stop(), running.loop).result()
        refused = client.get(f"/v1/runs/{run}/events?after=1.1", timeout=5)
        assert "is stopping" in problem(refused, 503, "unavailable")
