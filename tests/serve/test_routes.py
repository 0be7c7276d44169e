"""Every route of the API, and every bad input, against one server on a port."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from forge import replay
from forge.serve.openapi import OPERATIONS
from stages.halt import BackendFailed
from tests.durable.till import till
from tests.serve.served import REFUSED, Running, events_of, quick, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("serve")) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def started(client: httpx.Client, message: str = "Pay order A", workflow: str = "till", **more: object) -> Any:
    """The run once it has ended or waits."""
    answer = client.post("/v1/runs", json={"workflow": workflow, "message": message, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(client: httpx.Client, run: str, **headers: str) -> list[dict[str, Any]]:
    with client.stream("GET", f"/v1/runs/{run}/events", headers=headers) as stream:
        return list(events_of(stream.iter_lines()))


def problem(answer: httpx.Response, status: int, kind: str, field: str = "") -> str:
    """What the problem says in detail."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    told = answer.json()
    assert told["type"] == f"urn:forge:problem:{kind}"
    assert (told["status"], told.get("field", "")) == (status, field)
    detail: str = told["detail"]
    return detail


QUICK: dict[str, Any] = {"workflow": "quick", "message": "Do it", "variables": {"who": "quick"}}


def test_a_run_waits_is_approved_and_told_in_full(client: httpx.Client, tmp_path: Path) -> None:
    run = started(client)
    where, question = f"/v1/runs/{run['id']}", run["question"]
    assert (run["state"], question["call"]["name"], question["call"]["arguments"]) == (
        "waiting",
        "pay",
        '{"amount":5.0}',
    )
    assert run["message"] == "Pay order A"
    assert question["until"] > run["begun"]
    approved = client.post(f"{where}/answers", json={"type": "approve", "digest": question["digest"]})
    assert approved.status_code == 202
    told = events(client, run["id"])
    kinds = [event["type"] for event in told]
    assert kinds[:3] == ["state", "run_started", "connected"]
    assert [kind for kind in kinds if kind in {"approval_asked", "approval_answered", "finished"}] == [
        "approval_asked",
        "approval_answered",
        "finished",
    ]
    assert told[-1]["type"] == "state"
    assert told[-1]["run"]["outcome"] == {"type": "completed", "tool": "finish", "value": "done A"}
    assert [event["reply"]["usage"]["prompt"] for event in told if event["type"] == "model_replied"] == [100, 100, 100]
    known = client.get(where).json()
    assert (known["state"], known["question"], known["outcome"]["value"]) == ("completed", None, "done A")
    # Again from any of the events on, and nothing after the last: a browser that reconnects then stops.
    recorded = [event["id"] for event in told if event["id"]]
    assert len({*recorded}) == len(recorded)
    later = events(client, run["id"], **{"last-event-id": recorded[4]})
    assert [event["id"] for event in later] == [*recorded[5:], ""]  # a state of a run that has ended only at the end
    assert client.get(f"{where}/events?after={recorded[-1]}").status_code == 204
    # The journal is one.
    journal = client.get(f"{where}/journal")
    assert journal.headers["content-disposition"] == f'attachment; filename="{run["id"]}.jsonl"'
    (tmp_path / "run.jsonl").write_bytes(journal.content)
    assert replay(tmp_path / "run.jsonl", till).unwrap().value == "done A"
    assert client.delete(where).status_code == 204
    problem(client.get(where), 404, "unknown-run")


def test_what_the_models_server_said_is_told_to_the_log_alone(
    client: httpx.Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = client.post("/v1/runs", json={**QUICK, "message": "Go away"}).json()
    where = f"/v1/runs/{run['id']}"
    assert (run["state"], run["reason"]) == ("halted", "backend_failed")
    assert run["problem"] == "no reply from the model: status 400; see the log of forge serve"
    journal = client.get(f"{where}/journal").content
    (tmp_path / "run.jsonl").write_bytes(journal)
    assert isinstance(replay(tmp_path / "run.jsonl", quick).failure().halt, BackendFailed)
    told = [client.get(path).text for path in (where, f"{where}/events", "/v1/runs")]
    for text in (*told, journal.decode()):
        assert "sk-backend" not in text
        assert "backend.internal" not in text
    assert [REFUSED in record.getMessage() for record in caplog.records if run["id"] in record.getMessage()] == [True]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"type": "edit", "arguments": '{"amount": 4.0}'}, "paid 4.0"),
        ({"type": "reject", "reason": "too much"}, "too much"),
    ],
)
def test_a_call_is_edited_or_rejected(client: httpx.Client, answer: dict[str, str], result: str) -> None:
    run = started(client)
    said = client.post(f"/v1/runs/{run['id']}/answers", json={**answer, "digest": run["question"]["digest"]})
    assert said.status_code == 202
    with client.stream("GET", f"/v1/runs/{run['id']}/events") as stream:
        told = (event for event in events_of(stream.iter_lines()) if event["type"] == "tools_returned")
        next(told)
        assert result in json.dumps(next(told)["results"])
    client.post(f"/v1/runs/{run['id']}/cancel")


def test_a_question_at_the_end_is_answered_by_a_run_that_follows(client: httpx.Client) -> None:
    run = started(client, "ask first", "quick", variables={"who": "quick"})
    assert run["outcome"] == {"type": "needs_input", "question": "Which order?", "suggestions": ["A", "B"]}
    where = f"/v1/runs/{run['id']}/answers"
    answered = client.post(where, json={"type": "input", "text": "order B"})
    following = answered.json()
    assert (answered.status_code, answered.headers["location"]) == (201, f"/v1/runs/{following['id']}")
    assert events(client, following["id"])[-1]["run"]["outcome"]["value"] == "done B"
    assert client.get(f"/v1/runs/{run['id']}").json()["followed_by"] == following["id"]
    assert client.post(where, json={"type": "input", "text": "order B"}).json()["id"] == following["id"]
    assert "already has another" in problem(
        client.post(where, json={"type": "input", "text": "A"}), 409, "not-asked", "text"
    )
    # What has ended without a question goes on with what is said next, in the same conversation.
    more = client.post(f"/v1/runs/{following['id']}/answers", json={"type": "input", "text": "and order C"}).json()
    assert events(client, more["id"])[-1]["run"]["outcome"]["value"] == "done C"
    chain = client.get("/v1/runs", params={"conversation": run["conversation"]}).json()["runs"]
    assert {one["id"]: one["follows"] for one in chain} == {
        more["id"]: following["id"],
        following["id"]: run["id"],
        run["id"]: "",
    }


def test_a_run_under_way_is_streamed_steered_and_cancelled(client: httpx.Client, server: Running) -> None:
    wanted = {"workflow": "till", "message": "hang on", "stream": True}
    with client.stream("POST", "/v1/runs", json=wanted) as stream:
        told = events_of(stream.iter_lines())
        delta = next(event for event in told if event["type"] == "text")  # of a reply that is not whole
        assert (delta["text"], delta["id"], delta["turn"]) == ("I see to it.", "", 1)
        where = stream.headers["location"]
        said = client.post(f"{where}/messages", json={"text": "Pay less"})
        assert (said.status_code, said.json()) == (202, {"unread": 1})
        problem(client.delete(where), 409, "wrong-state")
        server.release()
        assert next(e for e in told if e["type"] == "steered")["text"] == "Pay less"
        while (event := next(told))["type"] != "state" or event["run"]["state"] != "waiting":
            pass
        assert client.post(f"{where}/cancel").status_code == 202
        last = list(told)[-1]
    assert (last["type"], last["run"]["state"]) == ("state", "cancelled")
    problem(client.post(f"{where}/messages", json={"text": "More"}), 409, "wrong-state")
    problem(client.post(f"{where}/retry"), 409, "wrong-state")
    assert client.post(f"{where}/cancel").json()["state"] == "cancelled"  # it stays as it is


def test_the_same_key_is_the_same_run(client: httpx.Client) -> None:
    wanted = {**QUICK, "background": True}
    first = client.post("/v1/runs", json=wanted, headers={"idempotency-key": '"one"'})
    assert first.status_code == 202
    again = client.post("/v1/runs", json=wanted, headers={"idempotency-key": "one"})
    assert again.json()["id"] == first.json()["id"]
    other = client.post("/v1/runs", json={**wanted, "message": "Else"}, headers={"idempotency-key": "one"})
    problem(other, 422, "reused-key", "Idempotency-Key")
    for key in ("x" * 300, ""):
        wrong = client.post("/v1/runs", json=wanted, headers={"idempotency-key": key})
        problem(wrong, 422, "wrong-field", "Idempotency-Key")


def test_runs_are_listed_in_pages(client: httpx.Client) -> None:
    made = {started(client, f"Note {n}", "quick", variables={"who": "x"})["id"] for n in range(3)}
    told, cursor = list[dict[str, Any]](), ""
    while not told or cursor:
        page = client.get("/v1/runs", params={"limit": 2, "workflow": "quick", "cursor": cursor}).json()
        told, cursor = [*told, *page["runs"]], page["cursor"]
    assert made <= {run["id"] for run in told}
    assert len({run["id"] for run in told}) == len(told)
    assert [run["begun"] for run in told] == sorted((run["begun"] for run in told), reverse=True)
    done = client.get("/v1/runs", params=[("state", "completed"), ("state", "halted"), ("limit", "3")]).json()
    assert {run["state"] for run in done["runs"]} == {"completed"}
    problem(client.get("/v1/runs?state=done"), 422, "wrong-field", "state")
    for wrong in ("0", "201", "0001000", "9" * 5000, "many", "1e3"):
        problem(client.get("/v1/runs", params={"limit": wrong}), 422, "wrong-field", "limit")
    for cursor in ("x", "inf/x:0", "nan/x:0", "1e300/x:0", "1.000/x"):
        problem(client.get("/v1/runs", params={"cursor": cursor}), 422, "wrong-field", "cursor")
    problem(client.get("/v1/runs?workflow=%00"), 422, "wrong-field")


def test_workflows_say_what_a_form_needs(client: httpx.Client) -> None:
    found = {one["name"]: one for one in client.get("/v1/workflows").json()["workflows"]}
    assert (found["quick"]["variables"], found["quick"]["calls"]) == (["who"], 5)
    pay = next(tool for tool in found["till"]["tools"] if tool["name"] == "pay")
    assert (pay["approval"], pay["required"], pay["effect"]) == (True, True, "write")
    assert pay["parameters"]["required"] == ["amount"]


@pytest.mark.parametrize(
    ("body", "refusal", "says"),
    [
        ({**QUICK, "workflow": "none"}, (422, "unknown-workflow", "workflow"), "available: till, quick, desk"),
        ({**QUICK, "message": 7}, (422, "wrong-field", "message"), "Expected `str`, got `int`"),
        ({**QUICK, "message": " "}, (422, "wrong-field", "message"), "is empty"),
        ({"workflow": "quick"}, (422, "wrong-field", "message"), "Object missing required field `message`"),
        ({**QUICK, "extra": 1}, (422, "wrong-field", "extra"), "unknown field `extra`."),
        ({**QUICK, "mesage": "x"}, (422, "wrong-field", "mesage"), "field `mesage`. Did you mean message?"),
        ({**QUICK, "variables": {}}, (422, "wrong-field", "variables"), "or write {{who}} for literal braces"),
        ({**QUICK, "variables": {"who": 1}}, (422, "wrong-field", "variables"), "Expected `str`, got `int`"),
        ({**QUICK, "priority": 0}, (422, "wrong-field", "priority"), ">= 1"),
        ([], (422, "wrong-field", ""), "Expected `object`, got `array`"),
        (b"{", (400, "wrong-json", ""), "truncated"),
        (b"[" * 1000, (400, "wrong-json", ""), "nested deeper than 128 levels"),
        (b'{"message":"' + b"x" * (1 << 20), (413, "too-large", ""), "larger than 1048576 bytes"),
    ],
)
def test_a_start_that_is_wrong(client: httpx.Client, body: object, refusal: tuple[int, str, str], says: str) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post("/v1/runs", content=content, headers={"content-type": "application/json"})
    assert problem(answer, *refusal).endswith(says)


def test_answers_that_are_wrong(client: httpx.Client) -> None:
    run = started(client)
    where, digest = f"/v1/runs/{run['id']}/answers", run["question"]["digest"]
    for body, status, kind, field in [
        ({"type": "approve", "digest": "another"}, 409, "not-asked", "digest"),
        ({"type": "approve"}, 422, "wrong-field", "digest"),
        ({"type": "maybe", "digest": digest}, 422, "wrong-field", "type"),
        ({"type": "edit", "digest": digest, "arguments": "[1]"}, 422, "wrong-field", "arguments"),
        ({"type": "edit", "digest": digest, "arguments": "{"}, 422, "wrong-field", "arguments"),
        ({"type": "settle", "digest": digest, "happened": True}, 422, "wrong-field", "type"),
        ({"type": "input", "text": "A"}, 409, "not-asked", "type"),
    ]:
        problem(client.post(where, json=body), status, kind, field)
    edited = client.post(where, json={"type": "approve", "digest": digest, "arguments": "{}"})
    assert "it belongs to the type edit" in problem(edited, 422, "wrong-field", "arguments")
    problem(client.post(f"/v1/runs/{run['id']}/messages", json={"text": " "}), 422, "wrong-field", "text")
    assert client.post(where, json={"type": "approve", "digest": digest}).status_code == 202
    problem(client.post(where, json={"type": "approve", "digest": digest}), 409, "not-asked", "digest")


def test_what_is_not_there(client: httpx.Client) -> None:
    for method, path in [
        ("GET", "/v1/runs/none"),
        ("GET", "/v1/runs/none/events"),
        ("GET", "/v1/runs/none/journal"),
        ("POST", "/v1/runs/none/cancel"),
        ("POST", "/v1/runs/none/retry"),
        ("DELETE", "/v1/runs/none"),
    ]:
        problem(client.request(method, path), 404, "unknown-run")
    problem(client.post("/v1/runs/none/answers", json={"type": "input", "text": "A"}), 404, "unknown-run")
    problem(client.get("/v1/runs/%00"), 404, "unknown-run")  # Postgres refuses texts with a NUL
    problem(client.get("/v2/runs"), 404, "not-found")
    refused = client.put("/v1/runs", json={})
    problem(refused, 405, "method-not-allowed")
    assert refused.headers["allow"] == "POST, GET"
    plain = client.post("/v1/runs", content="workflow=till", headers={"content-type": "text/plain"})
    problem(plain, 415, "wrong-media-type", "Content-Type")
    run = started(client, "Note", "quick", variables={"who": "x"})
    problem(client.get(f"/v1/runs/{run['id']}/events?after=x"), 422, "wrong-field", "Last-Event-ID")


def test_other_hosts_and_pages_are_refused(client: httpx.Client) -> None:
    problem(client.get("/v1/runs", headers={"host": "evil.example"}), 403, "forbidden")
    problem(client.get("/v1/runs", headers={"origin": "http://evil.example"}), 403, "forbidden")
    allowed = client.get("/healthz", headers={"origin": "http://localhost:3000"})
    assert allowed.headers["access-control-allow-origin"] == "http://localhost:3000"


def test_health_metrics_and_the_page(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "problem": ""}
    assert client.get("/readyz").json() == {"status": "ok", "problem": ""}
    metrics = client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert 'forge_requests_total{path="/healthz",status="200"}' in metrics.text
    assert 'forge_runs{state="waiting"}' in metrics.text
    for path in ("/page/../api.py", "/page/%2e%2e/api.py", "/page/none.js", "/page/.hidden.js"):
        problem(client.get(path), 404, "not-found")
    assert "script-src 'self'" in client.get("/v1/workflows").headers["content-security-policy"]


def test_the_api_says_what_it_is(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(document).validate()
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(operation.method, operation.path) for operation in OPERATIONS}


def test_a_workflow_that_has_changed_is_told(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(client, "Note", "quick", variables={"who": "x"})
    monkeypatch.setitem(quick.__dict__, "system_prompt", "You were {who}.")
    problem(client.get(f"/v1/runs/{run['id']}/events"), 409, "workflow-changed")
    assert client.get(f"/v1/runs/{run['id']}").json()["state"] == "completed"
