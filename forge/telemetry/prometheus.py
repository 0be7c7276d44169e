"""Prometheus metrics: one definition of every series, for the proxy, forge serve and other programs.

Labels are few and bounded: no ids, users or arguments. A step of a durable run is counted where it is performed;
replays are not counted.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from forge.observation import Beginning, ModelAsked, OperationSpan, RunBegins, ToolCalled
from forge.telemetry.bounds import Bounded, tool_outcome
from stages import events
from stages.effect import Replied, Undelivered, Usage
from stages.halt import Cancelled
from stages.message import Assistant
from stages.wire.deltas import Retry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of `Metrics.text`."""

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


class Metrics:
    """The series of a server or process. As an observer (`forge.observation.observe_with`) it counts runs."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        gauge, counter = partial(Gauge, registry=self.registry), partial(Counter, registry=self.registry)
        histogram = partial(Histogram, buckets=_SECONDS, registry=self.registry)
        self.runs = gauge("forge_runs", "Runs, by state: running here, or queued and waiting.", ["state"])
        self.runs_ended = counter("forge_runs_ended", "Runs that ended, by state and halt.", ["state", "halt"])
        self.model_seconds = histogram("forge_model_seconds", "Model calls, including retries.", ["outcome"])
        self.first_chunk = histogram("forge_first_chunk_seconds", "Time to a stream's first chunk.")
        self.tokens = counter(
            "forge_tokens", "Tokens of prompts (prompt), replies (completion) and cached prompts (cached).", ["kind"]
        )
        self.tool_seconds = histogram("forge_tool_seconds", "Tool calls.", ["tool", "outcome"])
        self.repairs = counter("forge_repairs", "Rescued and repaired calls, corrections and retries.", ["kind"])
        self.compactions = counter("forge_compactions", "Histories shortened.")
        self.queue_depth = gauge("forge_queue_depth", "Requests or runs that are queued.")
        # Of servers
        self.requests = counter("forge_requests", "Requests.", ["path", "status"])
        self.outcomes = counter("forge_outcomes", "Outcomes of requests to the model.", ["outcome"])
        self.retries = counter("forge_retries", "Retries of model calls.")
        self.waiting = gauge("forge_requests_waiting", "Requests waiting for a slot.")
        self.working = gauge("forge_requests_working", "Requests at the model.")
        self.streams = gauge("forge_streams", "Open event streams, and requests waiting for a run.")
        self._tools = Bounded()

    def watch(self, gauge: Gauge, depth: Callable[[], float], **labels: str) -> None:
        """Compute the gauge's value whenever it is read."""
        (gauge.labels(**labels) if labels else gauge).set_function(depth)

    def text(self) -> bytes:
        """All series in the Prometheus text format."""
        return generate_latest(self.registry)

    def begin(self, what: Beginning) -> OperationSpan | None:
        """Start measuring an operation."""
        match what:
            case RunBegins():
                self.runs.labels("running").inc()
                return _Measured(self._run_ended)
            case ModelAsked():
                return _Measured(self._replied, self.first_chunk.observe)
            case ToolCalled(call=call):
                tool = self._tools(call.name)
                seconds = self.tool_seconds
                return _Measured(lambda took, outcome: seconds.labels(tool, tool_outcome(outcome)).observe(took))
            case _:
                return None

    def tell(self, what: events.Stamped | Retry) -> None:
        """Count an event."""
        if isinstance(what, Retry):
            self.repairs.labels("transport_retry").inc()
            return
        match what.event:
            case events.MessageAdded(message=Assistant(calls=calls)):
                for call in calls:
                    if call.origin != "native":
                        self.repairs.labels("rescued").inc()
                    if call.repairs:
                        self.repairs.labels("repaired").inc()
            case events.Nudged(kind=kind):
                self.repairs.labels(kind.value).inc()
            case events.FellBack():
                self.repairs.labels("fell_back").inc()
            case events.HistoryCompacted():
                self.compactions.inc()
            case _:
                pass

    def headers(self) -> Mapping[str, str]:
        """None."""
        return {}

    def _run_ended(self, _: float, outcome: object) -> None:
        self.runs.labels("running").dec()
        match outcome:
            case events.RunFinished():
                self.runs_ended.labels("completed", "").inc()
            case events.RunHalted(halt=Cancelled()):
                self.runs_ended.labels("cancelled", "").inc()
            case events.RunHalted(halt=halt):
                self.runs_ended.labels("halted", type(halt).__name__).inc()
            case None:
                pass  # it continues later, or in another process
            case _:
                self.runs_ended.labels("failed", "").inc()

    def _replied(self, took: float, outcome: object) -> None:
        match outcome:
            case Replied(reply=reply):
                self.model_seconds.labels("replied").observe(took)
                self.used(reply.usage)
            case Undelivered(fault=fault):
                self.model_seconds.labels(fault.kind).observe(took)
            case _:
                self.model_seconds.labels("cancelled").observe(took)

    def used(self, usage: Usage | None) -> None:
        """Count the tokens of a reply."""
        if usage is not None:
            self.tokens.labels("prompt").inc(usage.prompt)
            self.tokens.labels("completion").inc(usage.completion)
            self.tokens.labels("cached").inc(usage.cached)


class _Measured:
    """A timed operation."""

    headers: Mapping[str, str] = {}

    def __init__(self, ended: Callable[[float, object], None], first: Callable[[float], None] | None = None) -> None:
        self._began, self._ended, self._first = time.monotonic(), ended, first

    def first(self) -> None:
        """The first chunk of a stream has arrived."""
        first, self._first = self._first, None
        if first is not None:
            first(time.monotonic() - self._began)

    def end(self, outcome: object) -> None:
        """It is over."""
        self._ended(time.monotonic() - self._began, outcome)
