"""Exporting: where a command's spans and metrics go, for `--otel`: to what is set up already, else by OTLP over HTTP.

A program of one's own sets up its SDK itself; this is for the commands, which have no place to do it.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from forge.telemetry import instrument

_PATIENCE = 3.0
"""Seconds for what is left at the end of a command."""

_EXPORTER = "opentelemetry.exporter.otlp.proto.http"


@contextmanager
def exporting() -> Iterator[None]:
    """Telemetry on, and what is left of it sent at the end. What is missing is said once; the command works without."""
    undo = instrument()
    finish = _set_up()
    try:
        yield
    finally:
        undo()
        _within(finish)


def _set_up() -> Callable[[], None]:
    """Set up the SDK by its environment variables (OTEL_EXPORTER_OTLP_ENDPOINT …); what ends it."""
    from opentelemetry import metrics, trace  # noqa: PLC0415 - an extra

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return lambda: None  # it is set up, by opentelemetry-instrument for one, and ends by itself
    if find_spec("opentelemetry.sdk") is None or not _exporter_is_there():
        _say(
            "--otel: no SDK of OpenTelemetry is set up here, so nothing is recorded. Install opentelemetry-sdk and "
            "opentelemetry-exporter-otlp-proto-http, or start forge with opentelemetry-instrument (docs/telemetry.md)"
        )
        return lambda: None
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first.
    resource = Resource.create()
    if str(resource.attributes.get("service.name", "")).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "forge"}))
    # Their own endings would wait for an exporter that hangs.
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource, shutdown_on_exit=False)
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)

    def finish() -> None:
        tracers.shutdown()
        meters.shutdown()

    return finish


def _exporter_is_there() -> bool:
    try:
        return find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:
        return False


def _within(finish: Callable[[], None]) -> None:
    """Finish, but wait only so long: the exporter's server may be away."""
    finishing = threading.Thread(target=finish, name="forge-telemetry", daemon=True)
    finishing.start()
    finishing.join(_PATIENCE)
    if finishing.is_alive():
        _say(f"--otel: what was recorded last was not taken within {_PATIENCE:g} seconds, and is lost")


def _say(sentence: str) -> None:
    print(f"forge: {sentence}", file=sys.stderr)  # noqa: T201 - for a command
