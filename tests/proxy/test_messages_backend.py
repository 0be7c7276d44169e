"""Anthropic's API behind the proxy and its official client before it: what passes as it came, what a retry keeps."""

import asyncio
import json
import re
from typing import Any

import anthropic
import msgspec
import pytest

from forge.backends import Anthropic
from forge.proxy import ProxyOptions, ProxyServer, service
from tests.proxy.test_clients import THEIRS, Clients, clients
from tests.proxy.test_proxy import ASK, LOOK
from tests.scripted_model import Line, ScriptedModel, sse, streamed, whole

Event = dict[str, Any]

SIGNED: Event = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnMQ=="}
HIDDEN: Event = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
TEXT: Event = {"type": "text", "text": "Let me look."}
USE: Event = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": 4}}
BAD_USE = USE | {"id": "toolu_0", "input": {"at": "the door"}}
USAGE = {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 70, "output_tokens": 9}


def message(*content: Event, stop: str = "tool_use") -> Event:
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": content}
    return {**said, "stop_reason": stop, "stop_sequence": None, "usage": USAGE, "container": None}


def events(*content: Event, stop: str = "tool_use") -> list[bytes]:
    """A message as the API streams it."""
    begun = message(stop=stop) | {"stop_reason": None, "content": []}
    told: list[Event] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for number, block in enumerate(content):
        empty, deltas = opened(block)
        told.append({"type": "content_block_start", "index": number, "content_block": empty})
        told += [{"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas]
        told.append({"type": "content_block_stop", "index": number})
    ended = {"stop_reason": stop, "stop_sequence": None}
    told += [{"type": "message_delta", "delta": ended, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]
    return [sse(event, event["type"]) for event in told]


def opened(block: Event) -> tuple[Event, list[Event]]:
    match block["type"]:
        case "text":
            return block | {"text": ""}, [
                {"type": "text_delta", "text": part} for part in re.split("(?<= )", block["text"])
            ]
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            return block | {"thinking": "", "signature": ""}, [
                thought,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use":
            return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        case _:
            return block, []


CACHED: Any = {"type": "ephemeral"}
BODY: Event = {
    "model": "m",
    "max_tokens": 4096,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": CACHED}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Look.", "cache_control": CACHED}]}],
    "tools": [THEIRS | {"cache_control": CACHED}],
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "context_management": {"edits": []},
}


def in_front_of(*script: Line, **options: Any) -> Any:
    return clients(*script, profile="anthropic", model="m", **options)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_clean_message_passes_byte_for_byte_in_both_directions(stream: bool) -> None:
    reply = message(SIGNED, HIDDEN, TEXT, USE)
    line = streamed(*events(SIGNED, HIDDEN, TEXT, USE)) if stream else whole(reply)
    body = msgspec.json.format(msgspec.json.encode(BODY | {"stream": stream}))
    async with in_front_of(line) as there:
        betas = {"anthropic_version": "2026-10-21", "anthropic_beta": "context-management-2025-06-27,other"}
        status, got, _ = await there.post("/v1/messages", body, x_api_key="the-key", **betas)
        assert (status, got) == (200, b"".join(line.parts))
        assert there.model.asked == [body]
        sent = there.model.headers[0]
        assert (sent["x-api-key"], sent["anthropic-version"]) == ("the-key", "2026-10-21")
        assert sent["anthropic-beta"] == "context-management-2025-06-27,other"
        assert "authorization" not in sent


async def test_a_client_that_says_no_version_gets_the_one_that_forge_knows() -> None:
    async with in_front_of(whole(message(USE))) as there:
        await there.post("/v1/messages", BODY)
        assert there.model.headers[0]["anthropic-version"] == "2023-06-01"


async def asked_for(there: Clients, messages: list[Any], *, stream: bool) -> anthropic.types.Message:
    more: Any = {name: BODY[name] for name in ("system", "tools", "thinking")}
    if not stream:
        said: anthropic.types.Message = await there.theirs.messages.create(
            model="m", max_tokens=4096, messages=messages, **more
        )
        return said
    async with there.theirs.messages.stream(model="m", max_tokens=4096, messages=messages, **more) as streaming:
        return await streaming.get_final_message()


def answered(said: anthropic.types.Message) -> list[Any]:
    """The conversation as a client goes on with it."""
    content = [block.model_dump(exclude_none=True) for block in said.content]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "A tree."}
        for block in content
        if block["type"] == "tool_use"
    ]
    return [ASK, {"role": "assistant", "content": content}, {"role": "user", "content": results}]


@pytest.mark.parametrize("stream", [False, True])
async def test_thinking_comes_back_to_the_api_as_it_was(stream: bool) -> None:
    """The API refuses thinking without its signature, and a call whose thinking is missing."""
    end = message(TEXT, stop="end_turn")
    lines = (
        [streamed(*events(SIGNED, HIDDEN, TEXT, USE)), streamed(*events(TEXT, stop="end_turn"))]
        if stream
        else [whole(message(SIGNED, HIDDEN, TEXT, USE)), whole(end)]
    )
    async with in_front_of(*lines) as there:
        said = await asked_for(there, [ASK], stream=stream)
        assert said.usage.cache_read_input_tokens == 70
        await asked_for(there, answered(said), stream=stream)
        content = there.model.body(1)["messages"][1]["content"]
        assert content == [SIGNED, HIDDEN, TEXT, USE]


SECOND = SIGNED | {"thinking": "So.", "signature": "c2lnMg=="}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_retry_keeps_the_thinking_of_both_replies_with_their_signatures(stream: bool) -> None:
    first, second = (SIGNED, HIDDEN, BAD_USE), (SECOND, USE)
    lines = [streamed(*events(*each)) if stream else whole(message(*each)) for each in (first, second)]
    async with in_front_of(*lines) as there:
        said = await asked_for(there, [ASK], stream=stream)
        shown = [block.model_dump(exclude_none=True) for block in said.content]
        # A stream has shown the thinking of the first by the time that its call is refused.
        assert shown == [*((SIGNED, HIDDEN) if stream else ()), SECOND, USE]
        refused, correction = there.model.body(1)["messages"][1:]
        assert refused["content"][:2] == [SIGNED, HIDDEN]
        assert refused["content"][2]["input"] == {"at": "the door"}
        assert correction["content"][0]["tool_use_id"] == refused["content"][2]["id"]
        assert correction["content"][0]["is_error"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_repaired_call_comes_with_its_thinking_once(stream: bool) -> None:
    content = (SIGNED, HIDDEN, TEXT, USE | {"input": {"at": "4"}})
    line = streamed(*events(*content)) if stream else whole(message(*content))
    async with in_front_of(line) as there:
        said = await asked_for(there, [ASK], stream=stream)
        assert [block.model_dump(exclude_none=True) for block in said.content] == [SIGNED, HIDDEN, TEXT, USE]


async def test_a_ping_before_and_in_the_middle_of_a_message_does_not_change_its_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(service, "BEGIN_AFTER", 0.02)
    monkeypatch.setattr(service, "KEEP_ALIVE", 0.02)
    told = events(SIGNED, TEXT, USE)
    first, second = asyncio.Event(), asyncio.Event()
    line = streamed(*told, gate0=first, gate4=second)
    async with (
        in_front_of(line) as there,
        there.session.post(there.url + "/v1/messages", json=BODY | {"stream": True}) as answer,
    ):
        pings = [await answer.content.readuntil(b"\n\n")]
        first.set()
        while b"thinking_delta" not in (event := await answer.content.readuntil(b"\n\n")):
            pings.append(event)
        later = await answer.content.readuntil(b"\n\n")
        assert b"ping" in pings[0]
        assert b"ping" in later
        second.set()
        rest = await answer.content.read()
        own = [one + b"\n\n" for one in (b"".join(pings) + event + later + rest).split(b"\n\n")[:-1]]
        assert [one for one in own if b"event: ping" not in one] == [t for t in told if b"event: ping" not in t]


async def test_tokens_are_counted_by_the_api() -> None:
    counting = {name: BODY[name] for name in ("model", "system", "messages", "tools", "thinking")}
    slow = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    none = whole({"type": "error", "error": {"type": "not_found_error", "message": "?"}}, 404)
    script = (whole({"input_tokens": 77}), whole(slow, 429, retry_after="3"), none, streamed(*events(TEXT)))
    async with in_front_of(*script) as there:
        betas = {"anthropic_beta": "token-counting-2024-11-01"}
        assert (await there.post("/v1/messages/count_tokens", counting, **betas))[1] == b'{"input_tokens":77}'
        assert there.model.body(0) == counting
        assert there.model.headers[0]["anthropic-beta"] == betas["anthropic_beta"]
        status, body, headers = await there.post("/v1/messages/count_tokens", counting)
        assert (status, json.loads(body), headers["retry-after"]) == (429, slow, "3")
        for _ in (none, "what is no count"):
            status, body, _ = await there.post("/v1/messages/count_tokens", counting)
            assert (status, json.loads(body)["input_tokens"] > 5) == (200, True)


@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (529, "overloaded_error", anthropic.OverloadedError),
        (401, "authentication_error", anthropic.AuthenticationError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_errors_are_kept_as_the_api_has_them(status: int, kind: str, raised: Any, stream: bool) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "not now"}, "request_id": "req_1"}
    line = whole(error, status, retry_after="7")
    async with in_front_of(line, line) as there:
        got, body, headers = await there.post("/v1/messages", BODY | {"stream": stream})
        assert (got, json.loads(body), headers["retry-after"]) == (status, error, "7")
        with pytest.raises(raised, match="not now"):
            await asked_for(there, [ASK], stream=stream)


async def test_an_error_in_the_middle_of_a_stream_is_the_clients_own() -> None:
    broken = {"type": "error", "error": {"type": "overloaded_error", "message": "not now"}}
    async with in_front_of(streamed(*events(TEXT)[:4], sse(broken, "error"))) as there:
        with pytest.raises(anthropic.APIStatusError, match="not now"):
            await asked_for(there, [ASK], stream=True)


async def test_the_backend_of_the_official_sdk_passes_streams_through_too() -> None:
    told = events(SIGNED, TEXT, USE)
    async with (
        ScriptedModel(streamed(*told)) as model,
        ProxyServer(Anthropic("m", api_key="own-key", base_url=model.url), ProxyOptions(port=0)) as proxy,
        anthropic.AsyncAnthropic(base_url=proxy.url, api_key="client-key", max_retries=0) as client,
    ):
        asking: Any = [ASK]
        async with client.messages.stream(model="m", max_tokens=9, messages=asking, tools=[THEIRS]) as stream:
            said = await stream.get_final_message()
        assert [block.type for block in said.content] == ["thinking", "text", "tool_use"]
        assert model.headers[0]["x-api-key"] == "own-key"
        assert model.headers[0].get("authorization", "") == ""


async def test_a_client_of_openais_is_served_by_anthropics_api() -> None:
    async with in_front_of(whole(message(SIGNED, TEXT, USE)), whole(message(TEXT, stop="max_tokens"))) as there:
        tools: Any = [LOOK]
        asking: Any = [ASK]
        said = await there.own.chat.completions.create(model="m", messages=asking, tools=tools)
        assert said.choices[0].finish_reason == "tool_calls"
        assert said.usage is not None
        assert said.usage.prompt_tokens == 93
        sent = there.model.body(0)
        assert (sent["tools"][0]["name"], sent["max_tokens"] >= 1024) == ("look", True)
        cut = await there.own.chat.completions.create(model="m", messages=asking, tools=tools)
        assert cut.choices[0].finish_reason == "length"
