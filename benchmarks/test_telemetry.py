"""What telemetry costs a turn: a run of a hundred turns, each a model call and a tool's, off and on.

Off, nothing of OpenTelemetry is even imported. On, with the SDK and batches, a turn may take 0.3 ms more.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from forge import Limits, Scripted, Workflow, call, run, tool
from forge.interpreters.scripted import Line

TURNS = 100


@tool(effect="read")
async def look(number: int) -> str:
    """Look."""
    return f"found {number}"


@tool
async def finish(answer: str) -> str:
    """Finish."""
    return answer


FLOW = Workflow("flow", tools=[look, finish], terminal_tool="finish", limits=Limits(max_iterations=TURNS + 10))
SCRIPT: list[Line] = [*(call("look", number=n) for n in range(TURNS - 1)), call("finish", answer="done")]


@contextmanager
def telemetry(kind: str) -> Iterator[None]:
    if kind == "off":
        yield
        return
    if kind == "prometheus":
        from forge.observation import observe_with  # noqa: PLC0415
        from forge.telemetry.prometheus import Metrics  # noqa: PLC0415

        undo = observe_with(Metrics())
    else:
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415

        from forge.telemetry import instrument  # noqa: PLC0415

        tracers = TracerProvider()
        if kind == "sdk":
            tracers.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
        undo = instrument(
            tracer_provider=tracers if kind == "sdk" else None,
            meter_provider=MeterProvider([InMemoryMetricReader()]) if kind == "sdk" else None,
        )
    try:
        yield
    finally:
        undo()


@pytest.mark.parametrize("kind", ["off", "api", "sdk", "prometheus"])
def test_hundred_turns(benchmark: BenchmarkFixture, kind: str) -> None:
    def played() -> None:
        asyncio.run(run(FLOW, "Go", backend=Scripted(SCRIPT, context_tokens=1_000_000))).unwrap()

    with telemetry(kind):
        benchmark(played)
