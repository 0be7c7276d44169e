"""Who may do what: keys, scopes, owners; and how much: bodies, rates, streams."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from forge import Scripted
from forge.errors import ForgeError
from forge.serve import RunServer, ServeOptions
from forge.serve.app import Rates
from forge.serve.keys import KeyFile, add_key
from tests.commands import forge
from tests.serve.served import Running, events_of, quick, serving
from tests.serve.test_routes import QUICK, problem


async def test_a_server_can_be_opened_again(tmp_path: Path) -> None:
    # First in the file: one process has one worker, and the server of the other tests stays open.
    server = RunServer([quick], database=tmp_path / "runs.db", backend=Scripted([]), options=ServeOptions(port=0))
    for _ in range(2):
        async with server, httpx.AsyncClient(base_url=server.url) as client:
            assert (await client.get("/v1/runs")).json()["runs"] == []


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    file = tmp_path_factory.mktemp("keys") / "keys.txt"
    made = {
        "ann": add_key(file, "ann", ("read", "run", "answer")),
        "bob": add_key(file, "bob", ("read", "run", "answer")),
        "reader": add_key(file, "ann", ("read",)),
        "admin": add_key(file, "root", ("admin",)),
        "monitor": add_key(file, "prometheus", ("metrics",)),
        "gone": add_key(file, "gone", ("read",)),
    }
    return {**made, "file": str(file)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, str]) -> Iterator[Running]:
    options = ServeOptions(port=0, keys=Path(keys["file"]), body_limit=2000, streams=2)
    with serving(tmp_path_factory.mktemp("serve"), options) as running:
        yield running


def test_nobody_sees_what_is_anothers(server: Running, keys: dict[str, str]) -> None:
    with server.client(keys["ann"]) as ann, server.client(keys["bob"]) as bob, server.client(keys["admin"]) as admin:
        run = ann.post("/v1/runs", json={"workflow": "till", "message": "Pay"}).json()
        where, digest = f"/v1/runs/{run['id']}", run["question"]["digest"]
        assert run["owner"] == "ann"
        for method, path, body in [
            ("GET", "", None),
            ("GET", "/events", None),
            ("GET", "/journal", None),
            ("POST", "/answers", {"type": "approve", "digest": digest}),
            ("POST", "/cancel", None),
            ("POST", "/retry", None),
            ("POST", "/messages", {"text": "Stop"}),
            ("DELETE", "", None),
        ]:
            said = problem(bob.request(method, where + path, json=body), 404, "unknown-run")
            assert said == f"there is no run '{run['id']}'"  # the same as for a run that there is not
        assert bob.get("/v1/runs").json()["runs"] == []
        assert [one["id"] for one in ann.get("/v1/runs").json()["runs"]] == [run["id"]]
        assert [one["id"] for one in admin.get("/v1/runs").json()["runs"]] == [run["id"]]
        # One key of two callers: two runs.
        headers = {"idempotency-key": "same"}
        runs = [c.post("/v1/runs", json={**QUICK, "background": True}, headers=headers).json() for c in (ann, bob)]
        assert runs[0]["id"] != runs[1]["id"]
        assert admin.post(f"{where}/cancel").status_code == 202


def test_a_key_is_needed_and_its_scope(server: Running, keys: dict[str, str]) -> None:
    with server.client() as nobody, server.client(keys["reader"]) as reader, server.client("forge_wrong") as wrong:
        for client, says in ((nobody, "key required"), (wrong, "this key is not, or no longer, known here")):
            refused = client.get("/v1/runs")
            assert problem(refused, 401, "unauthorized", "Authorization").startswith(says)
            assert refused.headers["www-authenticate"] == "Bearer"
        for path in ("/healthz", "/readyz", "/openapi.json", "/"):
            assert nobody.get(path).status_code == 200
        assert reader.get("/v1/workflows").status_code == 200
        assert "'run'" in problem(reader.post("/v1/runs", json=QUICK), 403, "forbidden")
        problem(reader.get("/metrics"), 403, "forbidden")
        assert nobody.get("/v1/runs", headers={"origin": server.url}).status_code == 401
        asked = nobody.options(
            "/v1/runs", headers={"origin": "http://localhost:3000"}
        )  # a browser sends no key with it
        assert "DELETE" in asked.headers["access-control-allow-methods"]
        # With keys, any host; a page of its own, and none of others.
        own = {"host": "forge.example", "origin": "https://forge.example"}
        assert reader.get("/v1/workflows", headers=own).status_code == 200
        problem(reader.get("/v1/workflows", headers={**own, "origin": "https://evil.example"}), 403, "forbidden")


def test_a_monitoring_key_reads_metrics_and_nothing_else(server: Running, keys: dict[str, str]) -> None:
    with server.client(keys["monitor"]) as monitor, server.client(keys["admin"]) as admin:
        for client in (monitor, admin):
            assert "forge_runs" in client.get("/metrics").text
        problem(monitor.get("/v1/runs"), 403, "forbidden")
        problem(monitor.post("/v1/runs", json=QUICK), 403, "forbidden")


def test_a_key_that_is_taken_back_is_refused_at_once(server: Running, keys: dict[str, str]) -> None:
    file = Path(keys["file"])
    with server.client(keys["gone"]) as client:
        assert client.get("/v1/runs").status_code == 200
        file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "gone" not in line))
        problem(client.get("/v1/runs"), 401, "unauthorized", "Authorization")


def test_bodies_and_streams_are_bounded(server: Running, keys: dict[str, str]) -> None:
    with server.client(keys["ann"]) as client:
        problem(client.post("/v1/runs", json={**QUICK, "message": "x" * 2000}), 413, "too-large")
        run = client.post("/v1/runs", json={"workflow": "till", "message": "Pay"}).json()
        where = f"/v1/runs/{run['id']}/events"
        with client.stream("GET", where) as one, client.stream("GET", where) as two:
            told = [events_of(stream.iter_lines()) for stream in (one, two)]
            assert [next(events)["type"] for events in told] == ["state", "state"]
            refused = client.get(where)
            problem(refused, 429, "too-many")
            assert refused.headers["retry-after"] == "5"
            client.post(f"/v1/runs/{run['id']}/cancel")


def test_a_caller_who_asks_too_often_waits() -> None:
    rates = Rates(2.0)
    assert [rates.take("ann", 0.0) for _ in range(20)] == [0.0] * 20
    assert rates.take("ann", 0.0) == pytest.approx(0.5)
    assert rates.take("bob", 0.0) == 0.0
    assert rates.take("ann", 0.5) == 0.0


def test_no_keys_no_other_machines(tmp_path: Path) -> None:
    with pytest.raises(ForgeError, match="can be reached from other machines, and anybody there could start runs"):
        RunServer(quick, database=tmp_path / "runs.db", backend=Scripted([]), options=ServeOptions(host="0.0.0.0"))  # noqa: S104


def test_a_key_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    made = forge("key", "ann", "--key-file", str(file), "--scopes", "read,answer")
    caller = KeyFile(file).caller(made.stdout.strip())
    assert caller is not None
    assert (caller.owner, caller.may("answer"), caller.may("run")) == ("ann", True, False)
    assert made.stdout.strip() not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    for words, said in [
        (("a b", "--key-file", str(file)), "invalid owner 'a b'"),
        (("ann", "--key-file", str(file), "--scopes", "all"), "unknown scope 'all'"),
        (("ann", "--key-file", str(tmp_path / "no" / "keys")), "cannot write the key file"),
    ]:
        refused = forge("key", *words)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    # An editor may have left a comment without a newline at the end: the new key is a line of its own all the same.
    file.write_text("ann read " + "0" * 64 + "\n# bob is on leave")
    added = forge("key", "bob", "--key-file", str(file))
    assert KeyFile(file).caller(added.stdout.strip()) is not None
    file.write_text("ann read\n")
    with pytest.raises(ForgeError, match="line 1 is not a valid key entry"):
        KeyFile(file)
