"""`--otel` and `--log-format json` on the command line."""

import json
from pathlib import Path

import pytest

from forge.telemetry import exporting
from tests.commands import forge
from tests.scripted_server import calling
from tests.telemetry.recording import model_server, otlp_receiver

FLOW = '''
from forge import Workflow, tool

@tool
def done(answer: str) -> str:
    """Finish."""
    return answer

flow = Workflow("flow", tools=[done], terminal_tool="done")
'''
WORDS = ("--profile", "lm-studio", "--mode", "native", "--model", "tiny", "--journal", "run.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.py").write_text(FLOW)
    return tmp_path


def test_a_log_in_json_has_the_id_of_the_run_in_each_line(folder: Path) -> None:
    with model_server((200, calling("done", answer="x"))) as (url, _):
        done = forge("run", "flow.py", "Go", "--backend", url, *WORDS, "--log-format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    turns = [line for line in lines if "run" in line]
    assert [line["event"] for line in turns][-1] == "finished"
    assert {len(line["run"]) for line in turns} == {32}
    assert {line["workflow"] for line in turns} == {"flow"}


def test_without_an_sdk_that_is_said_once_and_the_run_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_exporter_is_there", lambda: False)  # as where only the API is installed
    with model_server((200, calling("done", answer="x"))) as (url, _):
        done = forge("run", "flow.py", "Go", "--backend", url, *WORDS, "--otel", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.count("no OpenTelemetry SDK is configured") == 1


@pytest.mark.soak  # a process of its own: what is set up for OpenTelemetry stays set up
def test_spans_of_a_command_arrive_and_a_receiver_that_is_away_costs_no_run(folder: Path) -> None:
    import os
    import subprocess
    import sys

    def run(url: str, receiver: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "forge", "run", "flow.py", "Go", "--backend", url, *WORDS, "--otel"]
        (folder / "run.jsonl").unlink(missing_ok=True)
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver, **variables}
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)

    replies = [(200, calling("done", answer="x"))] * 3
    with model_server(*replies) as (url, seen), otlp_receiver() as (receiver, spans):
        assert run(url, receiver).returncode == 0
        assert sorted(span.name for span in spans) == ["chat tiny", "execute_tool done", "invoke_workflow flow"]
        assert seen[0]["traceparent"]
        assert run(url, "http://127.0.0.1:9").returncode == 0
        count = len(spans)
        shown = run(url, receiver, OTEL_TRACES_EXPORTER="console,jaeger", OTEL_METRICS_EXPORTER="none")
        assert '"name": "invoke_workflow flow"' in shown.stdout
        assert "OTEL_TRACES_EXPORTER=jaeger is not used; it may be otlp, console or none" in shown.stderr
        assert len(spans) == count
