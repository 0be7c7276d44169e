"""Spans and metrics of a run: one trace, right parents, tokens once, nothing that was said unless it is asked for."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, mcp_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, http_attributes, server_attributes, url_attributes

from forge import (
    Agent,
    Scripted,
    ToolFailed,
    Workflow,
    call,
    run,
    run_sync,
    stream,
    tool,
)
from forge.backends import Server
from forge.errors import ForgeError
from forge.journal import Redact
from forge.observation import observing
from forge.telemetry import instrument, names
from stages.effect import RawCall, Reply, Usage
from stages.retry import Backoff
from tests.flows import approve
from tests.scripted_server import calling
from tests.telemetry.recording import attributes, events, model_server, own_id, parent, recorded, trace_id

SECRET = "sk-live-4242-secret"  # noqa: S105 - made up


@tool(effect="read")
def find(name: str) -> str:
    """Find a person."""
    with trace.get_tracer("the user's own").start_as_current_span("query"):
        return f"{name}: {SECRET}"


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ToolFailed(why)


@tool(approval=True)
def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def done(answer: str) -> str:
    """Finish."""
    return answer


desk = Workflow("desk", tools=[find, fail, pay, done], terminal_tool="done")


def used(reply: Reply, prompt: int, completion: int) -> Reply:
    return Reply(
        calls=reply.calls, text=reply.text, finish=reply.finish, usage=Usage(prompt=prompt, completion=completion)
    )


def test_a_run_is_one_trace_with_what_forge_did_in_it() -> None:
    wrong = Reply(calls=(RawCall(name="find", arguments='{"nom": 1}'),), finish="tool_calls")
    script = [
        used(Reply(text="I cannot."), 10, 1),
        used(wrong, 20, 2),
        used(call("find", name="Ann"), 30, 3),
        used(call("fail", why=SECRET), 40, 4),
        used(call("pay", amount=2.0), 50, 5),
        used(Reply(text='{"name": "done", "arguments": {"answer": "x"}}'), 60, 6),
    ]
    with recorded() as seen:
        trace.get_current_span()
        run_sync(desk, f"Find {SECRET}", backend=Scripted(script), ask=approve).unwrap()
    (whole,) = seen.named("invoke_workflow desk")
    assert whole.parent is None
    assert attributes(whole)["forge.run.outcome"] == "Completed"
    assert len({trace_id(span) for span in seen.spans}) == 1
    chats, tools = seen.named("chat scripted"), [span for span in seen.spans if span.name.startswith("execute_tool")]
    assert [span.name for span in tools] == [f"execute_tool {name}" for name in ("find", "fail", "pay", "done")]
    assert {parent(span) for span in (*chats, *tools)} == {own_id(whole)}
    assert events(whole) == [*["forge.correction"] * 2, *["forge.approval"] * 2, "forge.rescue"]
    # each belongs to the model call whose span has the same turn
    assert [(event.attributes or {})[names.TURN] for event in whole.events] == [1, 2, 5, 5, 6]
    assert [attributes(span)[names.TURN] for span in seen.named("chat scripted")] == [1, 2, 3, 4, 5, 6]
    # tokens stand on model calls alone, so that whoever sums them up counts each once
    assert sum(attributes(span).get(names.INPUT_TOKENS, 0) for span in seen.spans) == 210
    assert all(names.INPUT_TOKENS not in attributes(span) for span in (whole, *tools))
    assert [attributes(span).get("error.type") for span in tools] == [None, "ToolFailed", None, None]
    assert SECRET not in "".join(span.to_json() for span in seen.spans)
    assert all((chat.end_time or 0) <= (ran.start_time or 0) for chat, ran in zip(chats[2:], tools, strict=False))
    found = {
        (name, point["gen_ai.operation.name"]): value
        for name, point, value in seen.points()
        if "gen_ai.token.type" not in point
    }
    assert found["gen_ai.client.operation.duration", "chat"].count == 6
    assert tuple(found["gen_ai.client.operation.duration", "chat"].explicit_bounds) == names.SECONDS_BUCKETS
    tokens = {point["gen_ai.token.type"]: value for _, point, value in seen.points() if "gen_ai.token.type" in point}
    assert (tokens["input"].sum, tokens["output"].sum) == (210, 21)


def test_every_name_is_in_the_registry_of_the_conventions_or_begins_with_forge() -> None:
    registries = (
        gen_ai_attributes,
        mcp_attributes,
        gen_ai_metrics,
        error_attributes,
        http_attributes,
        server_attributes,
        url_attributes,
    )
    known = {value for one in registries for value in vars(one).values() if isinstance(value, str)}
    known |= {"network.transport"}
    ours = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "." in value}
    assert {name for name in ours if not name.startswith(("forge.", "http", "llama"))} <= known
    assert {names.CHAT, names.EXECUTE_TOOL, names.INVOKE_AGENT} <= {
        one.value for one in gen_ai_attributes.GenAiOperationNameValues
    }


def test_the_users_own_spans_are_within_the_tools_and_the_server_is_told_of_the_trace() -> None:
    replies = [
        (503, {"error": "busy"}),
        (200, calling("find", name="Ann")),
        (200, calling("done", answer="x")),
    ]
    with model_server(*replies) as (url, seen), recorded() as telemetry:
        own = telemetry.tracers.get_tracer("own")
        server = Server(url, profile="lm-studio", mode="native", model="tiny", retry=Backoff(first=0.001))

        @tool(effect="read")
        def find(name: str) -> str:
            """Find a person, in a thread."""
            with own.start_as_current_span("query"):
                return name

        flow = Workflow("flow", tools=[find, done], terminal_tool="done")
        with own.start_as_current_span("request"):
            run_sync(flow, "Find Ann", backend=server).unwrap()
    (whole,), (query,) = telemetry.named("invoke_workflow flow"), telemetry.named("query")
    (request,), chats = telemetry.named("request"), telemetry.named("chat tiny")
    assert parent(whole) == own_id(request)
    assert parent(query) == own_id(telemetry.named("execute_tool find")[0])
    sent = [headers["traceparent"].split("-")[2] for headers in seen if "traceparent" in headers]
    assert sent == [f"{own_id(chats[n]):016x}" for n in (0, 0, 1)]
    assert events(chats[0]) == ["forge.retry"]
    told = attributes(chats[0])
    assert (told["gen_ai.provider.name"], told["server.address"]) == ("lm_studio", "127.0.0.1")
    assert told["forge.attempts"] == 2
    assert chats[0].kind is trace.SpanKind.CLIENT


async def test_a_stream_does_not_leak_its_spans_to_its_reader() -> None:
    with recorded() as seen:
        around: list[int] = []
        async with aclosing(stream(desk, "Finish", backend=Scripted([call("done", answer="x")]))) as told:
            around += [trace.get_current_span().get_span_context().span_id async for _ in told]
        assert set(around) == {0}
    (chat,) = seen.named("chat scripted")
    assert "gen_ai.response.time_to_first_chunk" in attributes(chat)
    assert attributes(chat)["gen_ai.request.stream"] is True
    assert [point for name, point, _ in seen.points() if name == "gen_ai.client.operation.time_to_first_chunk"]


def test_an_agent_and_a_run_that_halts() -> None:
    talker = Agent("talker", tools=[find], backend=Scripted(["Hello."]))
    with recorded() as seen:
        talker.process_sync("Hi")
        run_sync(desk, "Go", backend=Scripted(["no"] * 20)).failure()
    (agent,), (halted,) = seen.named("invoke_agent talker"), seen.named("invoke_workflow desk")
    assert attributes(agent)["gen_ai.agent.name"] == "talker"
    assert halted.status.status_code is trace.StatusCode.ERROR
    assert attributes(halted)["error.type"] == attributes(halted)["forge.run.outcome"] != ""


def test_content_is_told_on_request_redacted_and_bounded() -> None:
    @tool(effect="read")
    def big(token: str) -> str:
        """Much."""
        return f"{token} " + "x" * 10_000_000

    flow = Workflow("flow", tools=[big, done], terminal_tool="done")
    script = [call("big", token=SECRET), call("done", answer=f"It is {SECRET}, and Ann's PIN is 4711-9")]
    with recorded(content=True, redact=Redact(values=["4711-9"], arguments=["big.token", "other.token"])) as seen:
        run_sync(flow, "Look", backend=Scripted(script)).unwrap()
    text = "".join(span.to_json() for span in seen.spans)
    assert SECRET not in text
    assert "4711-9" not in text
    (shown,) = [attributes(span) for span in seen.named("execute_tool big")]
    assert json.loads(shown["gen_ai.tool.call.arguments"])["token"].startswith("[redacted")
    assert len(shown["gen_ai.tool.call.result"]) < 70_000
    last = attributes(seen.named("chat scripted")[-1])
    assert json.loads(last["gen_ai.output.messages"])[0]["parts"][0]["name"] == "done"
    assert [one["role"] for one in json.loads(last["gen_ai.input.messages"])] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        *((value, True) for value in ("SPAN_ONLY", "span_and_event", "true", "1")),
        *((value, False) for value in ("", "EVENT_ONLY", "false", "0")),
    ],
)
def test_the_environment_asks_for_content(monkeypatch: pytest.MonkeyPatch, value: str, content: bool) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    with recorded() as seen:
        run_sync(desk, "Go", backend=Scripted([call("done", answer="x")])).unwrap()
    assert ("gen_ai.output.messages" in attributes(seen.named("chat scripted")[0])) == content


def test_a_tracer_that_raises_breaks_no_run_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: Span, parent_context: Any = None) -> None:
            raise RuntimeError("no room")

    tracers = TracerProvider()
    tracers.add_span_processor(Broken())
    undo = instrument(tracer_provider=tracers, meter_provider=MeterProvider())
    try:
        for _ in range(2):
            run_sync(desk, "Go", backend=Scripted([call("find", name="A"), call("done", answer="x")])).unwrap()
    finally:
        undo()
    said = [record for record in caplog.records if record.name == "forge.telemetry"]
    assert len(said) == 1
    assert "no room" in str(said[0].exc_info)


def test_a_run_does_not_wait_for_an_exporter_that_hangs() -> None:
    let_go = threading.Event()

    class Hanging(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            let_go.wait()
            return SpanExportResult.SUCCESS

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(Hanging(), schedule_delay_millis=1))
    undo = instrument(tracer_provider=tracers, meter_provider=MeterProvider())
    try:
        for _ in range(3):
            run_sync(desk, "Go", backend=Scripted([call("done", answer="x")])).unwrap()
        assert not let_go.is_set()  # the runs are over, and nothing has been taken
    finally:
        undo()
        let_go.set()
        tracers.shutdown()


def test_it_is_switched_on_once_and_undone(caplog: pytest.LogCaptureFixture) -> None:
    with recorded() as seen, pytest.raises(ForgeError, match="already enabled"):
        instrument()
    run_sync(desk, "Go", backend=Scripted([call("done", answer="x")])).unwrap()
    assert seen.spans == ()
    assert not observing()


def test_off_nothing_of_it_is_imported() -> None:
    code = """
import sys
from forge import Scripted, Workflow, call, run_sync, tool
@tool
def done(answer: str) -> str:
    "Finish."
    return answer
run_sync(Workflow("w", tools=[done], terminal_tool="done"), "Go", backend=Scripted([call("done", answer="x")])).unwrap()
print([name for name in sys.modules if name.startswith(("opentelemetry", "prometheus_client", "forge.telemetry"))])
"""
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_a_cancelled_run_ends_its_spans() -> None:
    cancel = asyncio.Event()

    @tool
    async def wait(why: str) -> str:
        """Wait."""
        cancel.set()
        await asyncio.Event().wait()
        return why

    flow = Workflow("flow", tools=[wait, done], terminal_tool="done")
    with recorded() as seen:
        ended = asyncio.run(run(flow, "Go", backend=Scripted([call("wait", why="x")]), cancel=cancel))
    ended.failure()
    (waited,), (whole,) = seen.named("execute_tool wait"), seen.named("invoke_workflow flow")
    assert attributes(waited)["forge.tool.outcome"] == "cancelled"
    assert attributes(whole)["error.type"] == "Cancelled"
    assert logging.getLogger("opentelemetry.context").disabled is False
