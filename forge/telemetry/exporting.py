"""Exporting for `--otel`: a command's spans and metrics go to an SDK already configured, else by OTLP over HTTP.

Programs configure their own SDK; this is for forge's commands, which cannot.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TypeVar

from forge.telemetry import instrument

_PATIENCE = 3.0
"""Seconds to export the rest when a command ends."""

_E = TypeVar("_E")

_EXPORTER = "opentelemetry.exporter.otlp.proto.http"


@contextmanager
def exporting() -> Iterator[None]:
    """Enable telemetry, and flush it on exit. Missing packages are reported once; the command works without them."""
    undo = instrument()
    finish = _set_up()
    try:
        yield
    finally:
        undo()
        _within(finish)


def _set_up() -> Callable[[], None]:
    """Configure the SDK from its environment variables (OTEL_EXPORTER_OTLP_ENDPOINT …). Returns its shutdown."""
    from opentelemetry import metrics, trace  # noqa: PLC0415 - an extra

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return lambda: None  # already configured, for example by opentelemetry-instrument, and shut down there
    if find_spec("opentelemetry.sdk") is None or not _exporter_is_there():
        _say(
            "--otel: no OpenTelemetry SDK is configured, so nothing is recorded. Install opentelemetry-sdk and "
            "opentelemetry-exporter-otlp-proto-http, or start forge with opentelemetry-instrument (docs/telemetry.md)"
        )
        return lambda: None
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter  # noqa: PLC0415

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
    resource = Resource.create()
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "forge"}))
    # Their own shutdown would wait for an exporter that hangs.
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in _chosen("OTEL_TRACES_EXPORTER", {"otlp": OTLPSpanExporter, "console": ConsoleSpanExporter}):
        tracers.add_span_processor(BatchSpanProcessor(exporter))
    measured = _chosen("OTEL_METRICS_EXPORTER", {"otlp": OTLPMetricExporter, "console": ConsoleMetricExporter})
    meters = MeterProvider([PeriodicExportingMetricReader(one) for one in measured], resource, shutdown_on_exit=False)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)

    def finish() -> None:
        tracers.shutdown()
        meters.shutdown()

    return finish


def _chosen(variable: str, known: Mapping[str, Callable[[], _E]]) -> list[_E]:
    """The exporters that the environment variable names, separated by commas; by default `otlp`."""
    names = [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()] or ["otlp"]
    for name in names:
        if name not in {*known, "none"}:
            _say(
                f"--otel: {variable}={name} is not used; it may be {', '.join(known)} or none. For other exporters, "
                "start forge with opentelemetry-instrument (docs/telemetry.md)"
            )
    return [known[name]() for name in names if name in known]


def _exporter_is_there() -> bool:
    try:
        return find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:
        return False


def _within(finish: Callable[[], None]) -> None:
    """Flush and shut down within a time limit, as the receiver may be unavailable."""
    finishing = threading.Thread(target=finish, name="forge-telemetry", daemon=True)
    finishing.start()
    finishing.join(_PATIENCE)
    if finishing.is_alive():
        _say(f"--otel: the last spans and metrics could not be exported within {_PATIENCE:g} seconds and are lost")


def _say(sentence: str) -> None:
    print(f"forge: {sentence}", file=sys.stderr)  # noqa: T201 - for a command
