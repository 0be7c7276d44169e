"""A durable run over two processes: one trace, its segments linked, each model call and its tokens counted once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.telemetry.recording import otlp_receiver

ROOT = Path(__file__).parents[2]


def worker(url: str, *words: str) -> tuple[str, str]:
    command = [sys.executable, "-m", "tests.telemetry.durable_worker", *words]
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": url}
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment)
    run, metrics = json.loads(done.stdout.splitlines()[-1])
    return run, metrics


@pytest.mark.soak  # two processes, each with DBOS and an SDK to import
def test_a_run_over_two_processes_is_one_trace(tmp_path: Path) -> None:
    database = str(tmp_path / "runs.db")
    with otlp_receiver() as (url, spans):
        run, first = worker(url, database)
        _, second = worker(url, database, run)
    names = sorted(span.name for span in spans)
    assert names == sorted(
        ["order", "start till", *["invoke_workflow till"] * 2, *["chat scripted"] * 4]
        + ["execute_tool look", "execute_tool pay", "execute_tool done"]
    )
    assert len({span.trace_id for span in spans}) == 1
    segments = sorted(
        (span for span in spans if span.name == "invoke_workflow till"), key=lambda s: s.start_time_unix_nano
    )
    (start,) = [span for span in spans if span.name == "start till"]
    assert [span.parent_span_id for span in segments] == [start.span_id] * 2
    assert [link.span_id for link in segments[1].links] == [segments[0].span_id]
    used = [v.value.int_value for s in spans for v in s.attributes if v.key == "gen_ai.usage.input_tokens"]
    assert used == [100, 100, 100]
    # what is replayed in the second process was counted in the first
    assert 'forge_tokens_total{kind="prompt"} 200.0' in first
    assert 'forge_tokens_total{kind="prompt"} 100.0' in second
    assert 'forge_repairs_total{kind="retry_nudge"} 1.0' in first
    assert "retry_nudge" not in second
    assert 'forge_runs_ended_total{halt="",state="completed"} 1.0' in second
    assert 'forge_runs{state="running"} 0.0' in first
