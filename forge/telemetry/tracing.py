"""Tracing: OpenTelemetry spans and metrics from observations (`forge.observation`)."""

import os
import time
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextvars import ContextVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace
from opentelemetry import context, metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from forge.connection import Endpoint
from forge.journal.records import OutcomeLine
from forge.masking import Redact
from forge.observation import (
    Beginning,
    McpCalled,
    ModelAsked,
    Notes,
    OperationSpan,
    Requested,
    Responded,
    RunBegins,
    RunEnqueued,
    ToolCalled,
)
from forge.telemetry import content, names
from forge.telemetry.bounds import Bounded, tool_outcome
from stages import events
from stages.effect import Execute, Failed, InDoubt, Replied, Reply, Results, Send, Succeeded, Undelivered
from stages.message import Assistant
from stages.wire.deltas import CallDelta, CallStarted, Delta, ReasoningDelta, Retry, TextDelta

Attributes = dict[str, AttributeValue]

_MODELS = 64
"""Maximum number of model names in metrics, as a proxy's clients may send any."""


class _Operation:
    """A span that is the current one until it ends. With `measured`, its duration is recorded with these attributes."""

    def __init__(self, span: Span, seen: "Tracing", measured: Attributes | None = None) -> None:
        self.span, self._seen, self._measured = span, seen, measured or {}
        self._began = time.monotonic()
        self._token = context.attach(trace.set_span_in_context(span))

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers for requests made within it."""
        carrier = dict[str, str]()
        propagate.inject(carrier, trace.set_span_in_context(self.span))
        return carrier

    def first(self) -> None:
        """Does nothing: there is no stream."""

    def end(self, outcome: object) -> None:
        """It is over."""
        took, failed = time.monotonic() - self._began, _failure(outcome)
        try:
            if self._measured:
                measured = {**self._measured, names.ERROR_TYPE: failed} if failed else self._measured
                self._seen.durations.record(took, measured)
            self._describe(outcome)
        finally:
            context.detach(self._token)
            if failed:
                self.span.set_attribute(names.ERROR_TYPE, failed)
                self.span.set_status(Status(StatusCode.ERROR))  # no description: messages may quote private content
            self.span.end()

    def _describe(self, outcome: object) -> None:
        """Set the attributes that tell how it ended."""


class _Run(_Operation):
    """A run. `chat` is its model call in progress."""

    def __init__(self, span: Span, seen: "Tracing", measured: Attributes) -> None:
        super().__init__(span, seen, measured)
        self._before = _run.set(self)
        self.chat: _Chat | None = None

    def _describe(self, outcome: object) -> None:
        _run.reset(self._before)
        match outcome:
            case events.RunFinished(outcome=ending):
                self.span.set_attribute(names.RUN_OUTCOME, type(ending).__name__)
            case events.RunHalted(halt=halt):
                self.span.set_attribute(names.RUN_OUTCOME, type(halt).__name__)
            case None:
                self.span.set_attribute(names.RUN_OUTCOME, "continued")
            case _:
                self.span.set_attribute(names.RUN_OUTCOME, "failed")


_PASSED_OVER = frozenset(
    {events.TurnStarted, events.ModelReplied, events.CallsAccepted, events.ToolsReturned, CallDelta}
)
"""Events that spans already cover; these are the most frequent ones."""

_run: ContextVar[_Run | None] = ContextVar("forge_telemetry_run", default=None)


class _Chat(_Operation):
    """A model call."""

    def __init__(self, span: Span, seen: "Tracing", what: ModelAsked, measured: Attributes) -> None:
        super().__init__(span, seen, measured)
        self._what = what
        self._first: float | None = None
        self.run = _run.get()
        if self.run is not None:
            self.run.chat = self

    def first(self) -> None:
        """The first chunk of the reply has arrived."""
        if self._first is None:
            self._first = time.monotonic() - self._began
            self._seen.first_chunk.record(self._first, self._measured)
            self.span.set_attribute(names.TIME_TO_FIRST_CHUNK, self._first)

    def _describe(self, outcome: object) -> None:
        if self.run is not None:
            self.run.chat = None
        span = self.span
        match outcome:
            case Replied(reply=reply, attempts=attempts):
                usage = reply.usage
                if span.is_recording():
                    told: Attributes = {names.FINISH_REASONS: (reply.finish,)}
                    if attempts > 1:
                        told[names.ATTEMPTS] = attempts
                    if usage is not None:
                        told[names.INPUT_TOKENS] = usage.prompt
                        told[names.OUTPUT_TOKENS] = usage.completion
                        if usage.cached:
                            told[names.CACHED_TOKENS] = usage.cached
                    span.set_attributes(told)
                if usage is not None:
                    self._seen.tokens.record(usage.prompt, {**self._measured, names.TOKEN_TYPE: "input"})
                    self._seen.tokens.record(usage.completion, {**self._measured, names.TOKEN_TYPE: "output"})
                self._write(reply)
            case Undelivered(attempts=attempts):
                span.set_attribute(names.ATTEMPTS, attempts)
            case _:
                pass

    def _write(self, reply: Reply) -> None:
        """Content attributes, if enabled. The reply comes first, as values to redact are learnt from it."""
        what = self._what
        if not self._seen.content or what.writer is None or not self.span.is_recording():
            return
        write = what.writer(self._seen.redact)
        replied = Replied(reply=replace(reply, tokens=()))
        said = _member(write(OutcomeLine(outcome=replied), replied), "outcome", "reply")
        self.span.set_attribute(names.OUTPUT_MESSAGES, content.output_messages(said))
        if isinstance(what.effect, Send):
            asked = replace(what.effect, request=content.latest(what.effect.request))
            self.span.set_attribute(
                names.INPUT_MESSAGES, content.input_messages(_member(write(asked, None), "request"))
            )


class _ToolCall(_Operation):
    """A tool's call."""

    def __init__(self, span: Span, seen: "Tracing", what: ToolCalled) -> None:
        super().__init__(span, seen, {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: seen.tools(what.call.name)})
        self._what = what

    def _describe(self, outcome: object) -> None:
        """Its outcome; arguments and result, if content is enabled."""
        what = self._what
        self.span.set_attribute(names.TOOL_OUTCOME, tool_outcome(outcome))
        if not self._seen.content or what.writer is None or not self.span.is_recording():
            return
        write = what.writer(self._seen.redact)
        called = Execute(calls=(what.call,))
        written = msgspec.json.decode(write(called, called), type=Execute)
        self.span.set_attribute(names.TOOL_ARGUMENTS, content.cut(written.calls[0].arguments))
        if isinstance(outcome, Succeeded | Failed):
            results = Results(results=(replace(outcome, value=_NULL) if isinstance(outcome, Succeeded) else outcome,))
            told = msgspec.json.decode(_member(write(OutcomeLine(outcome=results), results), "outcome"), type=_Told)
            self.span.set_attribute(names.TOOL_RESULT, content.cut(told.results[0].text or told.results[0].message))


_NULL = msgspec.Raw(b"null")


class _Result(msgspec.Struct):
    text: str = ""
    message: str = ""


class _Told(msgspec.Struct):
    results: list[_Result]


class _Request(_Operation):
    """A request to the proxy or to `forge serve`."""

    def _describe(self, outcome: object) -> None:
        if isinstance(outcome, Responded) and self.span.is_recording():
            self.span.set_attribute(names.HTTP_STATUS, outcome.status)
            notes = outcome.notes or Notes()
            if notes.outcome:
                self.span.set_attribute(names.PROXY_OUTCOME, notes.outcome)
                self.span.set_attribute(names.ATTEMPTS, notes.attempts)
            for name in notes.rescued:
                self.span.add_event(names.RESCUE, {names.TOOL_NAME: name})
            for why in notes.refused:
                self.span.add_event(names.CORRECTION, {"kind": why})
            if notes.compacted:
                self.span.add_event(names.COMPACTION, {"cut": notes.compacted})


class Tracing:
    """The observer. Content is recorded only with `content`, redacted by `redact` and by the run itself."""

    def __init__(
        self,
        tracers: trace.TracerProvider | None,
        meters: metrics.MeterProvider | None,
        version: str,
        *,
        content: bool,
        redact: Redact | None,
    ) -> None:
        self._tracer = trace.get_tracer(names.SCOPE, version, tracers, names.SCHEMA_URL)
        meter = metrics.get_meter(names.SCOPE, version, meters, names.SCHEMA_URL)
        seconds, tokens = names.SECONDS_BUCKETS, names.TOKEN_BUCKETS
        self.durations = meter.create_histogram(
            names.DURATION, "s", "GenAI operation duration.", explicit_bucket_boundaries_advisory=seconds
        )
        self.first_chunk = meter.create_histogram(
            names.FIRST_CHUNK, "s", "Time to receive the first chunk.", explicit_bucket_boundaries_advisory=seconds
        )
        self.tokens = meter.create_histogram(
            names.TOKEN_USAGE, "{token}", "Number of tokens used.", explicit_bucket_boundaries_advisory=tokens
        )
        self.content, self.redact = content, redact
        self.models, self.tools = Bounded(_MODELS), Bounded()

    def begin(self, what: Beginning) -> OperationSpan | None:
        """Begin a span."""
        match what:
            case RunBegins():
                return self._run(what)
            case ModelAsked():
                return self._chat(what)
            case ToolCalled(call=call, spec=spec):
                told: Attributes = {
                    names.OPERATION: names.EXECUTE_TOOL,
                    names.TOOL_NAME: call.name,
                    names.TOOL_TYPE: "function",
                    names.TOOL_CALL_ID: call.id,
                    names.TOOL_DESCRIPTION: content.cut(spec.description, 1000),
                    names.TOOL_EFFECT: spec.effect,
                }
                return _ToolCall(self._started(f"{names.EXECUTE_TOOL} {call.name}", told), self, what)
            case Requested(method=method, route=route, headers=headers):
                carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
                told = {names.HTTP_METHOD: method, names.HTTP_ROUTE: route, names.URL_SCHEME: "http"}
                parent = propagate.extract(carrier, Context())
                return _Request(self._started(f"{method} {route}", told, SpanKind.SERVER, parent), self)
            case RunEnqueued(run=run, name=name):
                told = {names.RUN_ID: run, names.WORKFLOW_NAME: name}
                return _Operation(self._started(f"start {name}", told, SpanKind.PRODUCER), self)
            case McpCalled():
                # Within a tool call, which already has a span.
                trace.get_current_span().set_attributes(
                    {
                        names.MCP_METHOD: "tools/call",
                        names.MCP_PROTOCOL: what.protocol,
                        names.NETWORK_TRANSPORT: what.transport,
                    }
                )
                return None

    def tell(self, what: events.Stamped | Retry) -> None:
        """Record an event."""
        if isinstance(what, Retry):
            told: Attributes = {names.ERROR_TYPE: str(what.fault.status or what.fault.kind)}
            told |= {"attempt": what.attempt, "wait_seconds": what.seconds}
            trace.get_current_span().add_event(names.RETRY, told)
            return
        run = _run.get()
        if run is None:
            return
        match what.event:
            case TextDelta() | ReasoningDelta() | CallStarted():
                if run.chat is not None:
                    run.chat.first()
            case event if type(event) not in _PASSED_OVER and run.span.is_recording():
                for name, attributes in _noted(event):
                    run.span.add_event(name, {names.TURN: what.turn, **attributes})
            case _:
                pass

    def headers(self) -> Mapping[str, str]:
        """The trace context for requests sent from here."""
        carrier = dict[str, str]()
        propagate.inject(carrier)
        return carrier

    def _started(
        self,
        name: str,
        attributes: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
        parent: Context | None = None,
        links: tuple[Link, ...] = (),
    ) -> Span:
        return self._tracer.start_span(name, parent, kind, attributes, links)

    def _run(self, what: RunBegins) -> _Run:
        kind, named = names.INVOKE_WORKFLOW, names.WORKFLOW_NAME
        if what.talks:
            kind, named = names.INVOKE_AGENT, names.AGENT_NAME
        measured: Attributes = {names.OPERATION: kind, named: what.name}
        told: Attributes = {**measured, names.RUN_ID: what.run}
        if what.segment:
            told[names.SEGMENT] = what.segment
        parent = propagate.extract({"traceparent": what.traceparent}, Context()) if what.traceparent else None
        before = trace.get_current_span(propagate.extract({"traceparent": what.follows}, Context())).get_span_context()
        links = (Link(before),) if before.is_valid else ()
        span = self._started(f"{kind} {what.name}".rstrip(), told, SpanKind.INTERNAL, parent, links)
        return _Run(span, self, measured)

    def _chat(self, what: ModelAsked) -> _Chat:
        endpoint = what.endpoint
        served = _served(endpoint)
        told: Attributes = {names.OPERATION: names.CHAT, **served, names.REQUEST_STREAM: what.streamed}
        measured: Attributes = {names.OPERATION: names.CHAT, **served}
        if what.model:
            told[names.REQUEST_MODEL], measured[names.REQUEST_MODEL] = what.model, self.models(what.model)
        told.update(_sampled(what))
        if isinstance(what.effect, Send):
            told[names.TURN] = what.effect.turn
        if what.target != "main":
            told[names.TARGET] = what.target
        kind = SpanKind.INTERNAL if endpoint is None else SpanKind.CLIENT
        return _Chat(self._started(f"{names.CHAT} {what.model}".rstrip(), told, kind), self, what, measured)


def _served(endpoint: Endpoint | None) -> Attributes:
    """The provider and its address."""
    if endpoint is None:
        return {names.PROVIDER: names.IN_PROCESS}
    from urllib.parse import urlsplit  # noqa: PLC0415 - loaded with httpx, which reaches servers

    at = urlsplit(endpoint.base)
    port = at.port or (443 if at.scheme == "https" else 80)
    provider = names.PROVIDERS.get(endpoint.profile, endpoint.profile or "unknown")
    return {names.PROVIDER: provider, names.SERVER_ADDRESS: at.hostname or "", names.SERVER_PORT: port}


def _sampled(what: ModelAsked) -> Iterator[tuple[str, AttributeValue]]:
    sampling = what.sampling
    options = (
        (names.REQUEST_TEMPERATURE, sampling.temperature),
        (names.REQUEST_TOP_P, sampling.top_p),
        (names.REQUEST_TOP_K, sampling.top_k),
        (names.REQUEST_SEED, sampling.seed),
        (names.REQUEST_STOP, sampling.stop),
        (names.REQUEST_MAX_TOKENS, sampling.max_tokens),
    )
    for name, value in options:
        if value is not UNSET:
            yield name, value


def _noted(event: events.Event | Delta) -> Iterator[tuple[str, Attributes]]:
    """An event's attributes on a span: names and counts, never content."""
    match event:
        case events.MessageAdded(message=Assistant(calls=calls)):
            for call in calls:
                if call.origin != "native":
                    yield names.RESCUE, {names.TOOL_NAME: call.name, "form": call.origin}
                if call.repairs:
                    yield names.REPAIR, {names.TOOL_NAME: call.name, "repairs": call.repairs}
        case events.HistoryCompacted(compaction=cut):
            tokens = {"tokens_before": cut.tokens_before, "tokens_after": cut.tokens_after}
            yield names.COMPACTION, {"phase": cut.phase, **tokens}
        case events.HeldBack(tools=tools, by=by, values=values):
            yield names.HELD_BACK, {"tools": tools, "by": by, "values": values}
        case events.ApprovalAsked(call=call):
            yield names.APPROVAL, {names.TOOL_NAME: call.name, "asked": True}
        case events.ApprovalAnswered(approved=approved):
            yield names.APPROVAL, {"approved": approved}
        case events.BackendReplaced(halt=halt):
            yield names.BACKEND_REPLACED, {"halt": type(halt).__name__}
        case events.Steered():
            yield names.STEERED, {}
        case _ if isinstance(event, events.Notice):
            tag = str(event.__struct_config__.tag)
            yield names.NOTICES.get(tag, f"forge.{tag}"), {**events.facts(event)}
        case _:
            pass


def _failure(outcome: object) -> str:
    """The failure as `error.type`; empty if there was none."""
    match outcome:
        case Undelivered(fault=fault):
            return str(fault.status or fault.kind)
        case Responded(status=status) if status >= 500:
            return str(status)
        case Failed(error=error):
            return error if error.isidentifier() and error != "McpToolError" else "tool_error"
        case InDoubt():
            return "in_doubt"
        case events.RunHalted(halt=halt):
            return type(halt).__name__
        case CancelledError() | GeneratorExit():  # a task was cancelled, or a stream closed
            return "cancelled"
        case BaseException():
            return type(outcome).__name__
        case _:
            return ""


def _member(written: bytes, *path: str) -> bytes:
    """A member as JSON."""
    for name in path:
        written = bytes(msgspec.json.decode(written, type=dict[str, msgspec.Raw])[name])
    return written


def wants_content() -> bool:
    """Whether the environment enables content, as the conventions define; only on spans here."""
    asked = os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
    return asked in {"true", "1", "span_only", "span_and_event"}
