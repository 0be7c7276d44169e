"""The proxy in a trace: a client's request, the model calls that it took, and what the backend is told of both."""

import httpx
from openai import AsyncOpenAI

from forge.backends import named
from forge.proxy import ProxyOptions, ProxyServer
from tests.scripted_model import DONE, ScriptedModel, called, chunk, completion, streamed, whole
from tests.telemetry.recording import Recorded, attributes, events, own_id, parent, recorded, trace_id

LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"place": {"type": "integer"}}, "required": ["place"]},
    },
}


async def asked(client: AsyncOpenAI, telemetry: Recorded, *, stream: bool) -> None:
    """A request of the SDK within a span of the client's own, as its instrumentation sends it."""
    with telemetry.tracers.get_tracer("client").start_as_current_span("work") as span:
        context = span.get_span_context()
        told = {"traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-01"}
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Look"}],
        "tools": [LOOK],
        "extra_headers": told,
        "stream": stream,
    }
    answer = await client.chat.completions.create(**body)  # type: ignore[call-overload]
    if stream:
        assert [piece async for piece in answer]


async def test_a_request_of_the_openai_sdk_is_one_trace_with_each_model_call() -> None:
    right = completion(None, ("look", '{"place": 4}'))
    wrong = completion(None, ("look", '{"place": "nowhere"}'))
    with recorded() as telemetry:
        async with (
            ScriptedModel(whole(wrong), whole(right)) as server,
            ProxyServer(named(server.url, ""), ProxyOptions(port=0)) as proxy,
            AsyncOpenAI(api_key="x", base_url=f"{proxy.url}/v1", max_retries=0) as client,
        ):
            await asked(client, telemetry, stream=False)
            sent = [headers.get("traceparent", "") for headers in server.headers]
            async with httpx.AsyncClient() as http:
                text = (await http.get(f"{proxy.url}/metrics")).text
        (work,), (request,) = telemetry.named("work"), telemetry.named("POST /v1/chat/completions")
        chats = telemetry.named("chat tiny")
        assert len({trace_id(span) for span in telemetry.spans}) == 1
        assert parent(request) == own_id(work)
        assert [parent(chat) for chat in chats] == [own_id(request)] * 2
        assert [one.split("-")[2] for one in sent] == [f"{own_id(chat):016x}" for chat in chats]
        assert sum(attributes(span).get("gen_ai.usage.input_tokens", 0) for span in telemetry.spans) == 22
        told = attributes(request)
        assert (told["forge.proxy.outcome"], told["http.response.status_code"]) == ("retried", 200)
        assert events(request) == ["forge.correction"]
        assert attributes(chats[0])["gen_ai.provider.name"] == "llama.cpp"
        assert 'forge_model_seconds_count{outcome="replied"} 2' in text
        assert 'forge_tokens_total{kind="prompt"} 22' in text
        assert 'forge_repairs_total{kind="corrected"} 1' in text
        assert "tiny" not in text


async def test_a_stream_through_the_proxy_counts_its_tokens_once_and_leaks_no_span() -> None:
    usage = {**chunk({}), "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}
    script = streamed(chunk(called("look", '{"place": 4}')), chunk({}, "tool_calls"), usage, DONE)
    with recorded() as telemetry:
        async with (
            ScriptedModel(script) as server,
            ProxyServer(named(server.url, ""), ProxyOptions(port=0)) as proxy,
            AsyncOpenAI(api_key="x", base_url=f"{proxy.url}/v1", max_retries=0) as client,
        ):
            await asked(client, telemetry, stream=True)
        (request,), (chat,) = telemetry.named("POST /v1/chat/completions"), telemetry.named("chat tiny")
        told = attributes(chat)
        assert parent(chat) == own_id(request)
        assert (told["gen_ai.usage.input_tokens"], told["gen_ai.request.stream"]) == (11, True)
        assert "gen_ai.response.time_to_first_chunk" in told
        assert "error.type" not in told
