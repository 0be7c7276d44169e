"""What the tests of telemetry record: the SDK's own exporters in memory, and a receiver of OTLP over HTTP."""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from forge.telemetry import instrument
from tests.serving import JsonHandler, threaded


class Recorded:
    """Spans and metrics so far."""

    def __init__(self, spans: InMemorySpanExporter, metrics: InMemoryMetricReader, tracers: TracerProvider) -> None:
        self._spans, self._metrics, self.tracers = spans, metrics, tracers

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._spans.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def points(self) -> list[tuple[str, Mapping[str, Any], Any]]:
        data = self._metrics.get_metrics_data()
        if data is None:
            return []
        return [
            (metric.name, point.attributes or {}, point)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]


@contextmanager
def recorded(**options: Any) -> Iterator[Recorded]:
    spans, reader, tracers = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    undo = instrument(tracer_provider=tracers, meter_provider=MeterProvider([reader]), **options)
    try:
        yield Recorded(spans, reader, tracers)
    finally:
        undo()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def events(span: ReadableSpan) -> list[str]:
    return [event.name for event in span.events]


def parent(span: ReadableSpan) -> int:
    return span.parent.span_id if span.parent else 0


def own_id(span: ReadableSpan) -> int:
    return int(span.context.span_id) if span.context else 0


def trace_id(span: ReadableSpan) -> int:
    return int(span.context.trace_id) if span.context else 0


@contextmanager
def otlp_receiver() -> Iterator[tuple[str, list[Any]]]:
    """The address of a receiver, and the spans that it has been sent, as OTLP has them."""
    spans: list[Any] = []

    class Receiver(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802 - the standard library's
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    spans.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.tell(200, b"", "application/x-protobuf")

    with threaded(Receiver) as address:
        yield address, spans


@contextmanager
def model_server(*replies: tuple[int, object]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that answers each post with the next of these, and the headers that it was sent."""
    left, seen = iter(replies), list[dict[str, str]]()

    class Model(JsonHandler):
        def get(self) -> None:
            self.tell(200, {"data": [{"id": "tiny"}]})

        def post(self, body: Any) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            status, answer = next(left)
            self.tell(status, answer)

    with threaded(Model) as address:
        yield address, seen
