"""Series for Prometheus: bounded labels, and no names of runs or users."""

import re

from forge import Scripted, Workflow, call, run_sync, tool
from forge.observation import observe_with
from forge.telemetry.bounds import Bounded
from forge.telemetry.prometheus import Metrics
from stages.effect import RawCall, Reply, Usage


@tool(effect="read")
def find(name: str) -> str:
    """Find a person."""
    if name == "nobody":
        raise ValueError("nobody")
    return name


@tool
def done(answer: str) -> str:
    """Finish."""
    return answer


def series(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.text().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_what_runs_did_is_counted() -> None:
    desk = Workflow("desk", tools=[find, done], terminal_tool="done")
    rescued = Reply(
        text='{"name": "find", "arguments": {"name": "Ann"}}', usage=Usage(prompt=20, completion=4, cached=5)
    )
    script = [rescued, Reply(text="no"), call("find", name="nobody"), call("done", answer="x")]
    metrics = Metrics()
    undo = observe_with(metrics)
    try:
        run_sync(desk, "Go", backend=Scripted(script)).unwrap()
        run_sync(desk, "Go", backend=Scripted([Reply(calls=(RawCall(name="x"),))] * 20)).failure()
    finally:
        undo()
    found = series(metrics)
    assert found['forge_runs{state="running"}'] == 0
    assert found['forge_runs_ended_total{halt="",state="completed"}'] == 1
    assert [
        halt for name in found if (halt := re.match(r'forge_runs_ended_total\{halt="(\w+)",state="halted"\}', name))
    ]
    assert found['forge_tokens_total{kind="cached"}'] == 5
    assert found['forge_tool_seconds_count{outcome="failed",tool="find"}'] == 1
    assert found['forge_repairs_total{kind="rescued"}'] == 1
    assert found['forge_repairs_total{kind="retry_nudge"}'] >= 1


def test_names_that_a_model_makes_up_become_no_series() -> None:
    bounded = Bounded(2)
    assert [bounded(name) for name in ("a", "b", "c", "a", "x" * 200)] == ["a", "b", "other", "a", "other"]
