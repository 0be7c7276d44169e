"""Servers that leave out what clients insist on: each client gets it all the same, from each kind of server."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.proxy.test_clients import MESSAGES, RESPONSES, THEIRS, TOOL, Clients, clients
from tests.proxy.test_proxy import asked
from tests.proxy.test_streams import all_of, body_of
from tests.scripted_model import DONE, Line, chunk, completion, sse, streamed, whole
from tests.wire_client import named_events

Event = dict[str, Any]

ARGUMENTS = '{"at": 4}'
CALL: Event = {"index": 0, "id": "c0", "type": "function", "function": {"name": "look", "arguments": ""}}


def call_chunk(**fields: Any) -> Event:
    return chunk({"tool_calls": [CALL | fields]})


def arguments_chunk(text: str, index: int = 0) -> Event:
    return chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})


OPEN = [chunk({"role": "assistant", "content": ""}), chunk({"content": "Let me look."})]
GROWN, END = arguments_chunk(ARGUMENTS), chunk({}, "tool_calls")
CHAT = [*OPEN, call_chunk(), GROWN, END]
REPLY = completion("Let me look.", ("look", ARGUMENTS))


def without(node: Any, *names: str) -> Any:
    """The same without any field of these names, however deep."""
    match node:
        case dict():
            return {name: without(value, *names) for name, value in node.items() if name not in names}
        case list():
            return [without(each, *names) for each in node]
        case _:
            return node


def typed(line: Line, kind: str = "") -> Line:
    """The line as if it were of another content type."""
    return replace(line, headers=(("content-type", kind),) if kind else ())


CHAT_SERVERS = {
    "right": streamed(*CHAT, DONE),
    **{f"no {name}": streamed(*without(CHAT, name), DONE) for name in ("role", "index", "type", "object", "usage")},
    "nothing but choices": streamed(*without(CHAT, "id", "object", "created", "model"), DONE),
    "no finish reason": streamed(*without(CHAT, "finish_reason"), DONE),
    "no last chunk": streamed(*CHAT[:-1], DONE),
    "no [DONE]": streamed(*CHAT),
    "the finish reason of a text": streamed(*CHAT[:-1], chunk({}, "stop"), DONE),
    "an empty id": streamed(*OPEN, call_chunk(id=""), GROWN, END, DONE),
    "the role in each chunk": streamed(
        *(chunk({"role": "assistant", **each["choices"][0]["delta"]}) for each in CHAT[:-1]), END, DONE
    ),
    "the id in each chunk": streamed(
        *OPEN, *(call_chunk(function={"name": "look", "arguments": part}) for part in ('{"at"', ": 4}")), END, DONE
    ),
    "a name in parts": streamed(
        *OPEN,
        call_chunk(function={"name": "lo", "arguments": ""}),
        chunk({"tool_calls": [{"index": 0, "function": {"name": "ok", "arguments": ARGUMENTS}}]}),
        *(END, DONE),
    ),
    "arguments that are an object": streamed(
        *OPEN, call_chunk(function={"name": "look", "arguments": {"at": 4}}), END, DONE
    ),
    "plain text": typed(streamed(*CHAT, DONE), "text/plain"),
    "no content type": typed(streamed(*CHAT, DONE)),
    "called JSON": typed(streamed(*CHAT, DONE), "application/json"),
    "CRLF": streamed(*(sse(event).replace(b"\n", b"\r\n") for event in CHAT), DONE),
    "no blank lines": streamed(b"".join(sse(event)[:-1] for event in CHAT), DONE),
    "whole": whole(REPLY),
    "whole, called a stream": typed(whole(REPLY), "text/event-stream"),
    "whole, with next to nothing": whole(
        without(REPLY, "id", "type", "index", "role", "object", "created", "usage", "finish_reason")
    ),
}

MESSAGE: Event = {
    "id": "msg_b",
    "type": "message",
    "role": "assistant",
    "model": "b",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 11, "output_tokens": 1},
}
USE: Event = {"type": "tool_use", "id": "t0", "name": "look", "input": {}}
START: Event = {"type": "message_start", "message": MESSAGE}


def block(index: int, opened: Event, delta: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": opened},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


TEXT = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Let me look."})
USED = block(1, USE, {"type": "input_json_delta", "partial_json": ARGUMENTS})
DELTA: Event = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}
STOP: Event = {"type": "message_stop"}
THEIR_STREAM = [START, *TEXT, *USED, DELTA, STOP]
WHOLE: Event = {
    **MESSAGE,
    "content": [{"type": "text", "text": "Let me look."}, {**USE, "input": {"at": 4}}],
    "stop_reason": "tool_use",
}


def named(events: list[Event]) -> Line:
    return streamed(*(sse(event, event["type"]) for event in events))


def dropped(*kinds: str) -> list[Event]:
    """The stream without its events of these kinds."""
    return [event for event in THEIR_STREAM if event["type"] not in kinds]


MESSAGES_SERVERS = {
    "right": named(THEIR_STREAM),
    "no names": streamed(*THEIR_STREAM),
    "no usage": named(without(THEIR_STREAM, "usage")),
    "no index": named(without(THEIR_STREAM, "index")),
    "no block ends": named(dropped("content_block_stop")),
    "no message_delta": named(dropped("message_delta")),
    "no message_stop": named(dropped("message_stop")),
    "no message_start": named(dropped("message_start")),
    "no ids": named(without(THEIR_STREAM, "id")),
    "an empty id": named([START, *TEXT, *block(1, USE | {"id": ""}, USED[1]["delta"]), DELTA, STOP]),
    "input at once": named([START, *TEXT, {**USED[0], "content_block": WHOLE["content"][1]}, USED[2], DELTA, STOP]),
    "plain text": typed(named(THEIR_STREAM), "text/plain"),
    "whole": whole(WHOLE),
    "whole, with next to nothing": whole(without(WHOLE, "id", "role", "model", "usage", "stop_reason")),
}

OLLAMA: list[Event] = [
    {"model": "b", "message": {"role": "assistant", "content": "Let me "}, "done": False},
    {"model": "b", "message": {"role": "assistant", "content": "look."}, "done": False},
    {
        "model": "b",
        "message": {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {"at": 4}}}]},
        "done": False,
    },
    {"model": "b", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
]
COUNTS = {"prompt_eval_count": 11, "eval_count": 7}


def ndjson(events: list[Event]) -> Line:
    parts = (msgspec.json.encode(event) + b"\n" for event in events)
    return typed(streamed(*parts), "application/x-ndjson")


OLLAMA_WHOLE = {
    **OLLAMA[3],
    "message": {"role": "assistant", "content": "Let me look.", "tool_calls": OLLAMA[2]["message"]["tool_calls"]},
}
OLLAMA_SERVERS = {
    "right": ndjson([*OLLAMA[:3], OLLAMA[3] | COUNTS]),
    "no counts": ndjson(OLLAMA),
    "no reason": ndjson([*OLLAMA[:3], without(OLLAMA[3], "done_reason")]),
    "called JSON": typed(ndjson(OLLAMA), "application/json"),
    "whole": whole(OLLAMA_WHOLE),
}

BACKENDS: dict[str, Any] = {
    "chat": {"profile": "openai-compatible"},
    "messages": {"profile": "anthropic", "model": "m"},
    "ollama": {"profile": "ollama", "model": "m", "pages": {"api/show": {"model_info": {}}}},
}


def cases(kind: str, servers: Mapping[str, Line]) -> list[Any]:
    return [pytest.param(kind, line, id=f"{kind}: {name}") for name, line in servers.items()]


@pytest.mark.parametrize(
    ("kind", "line"),
    [*cases("chat", CHAT_SERVERS), *cases("messages", MESSAGES_SERVERS), *cases("ollama", OLLAMA_SERVERS)],
)
async def test_a_stream_through_each_client(kind: str, line: Line) -> None:
    async with clients(*[line] * 6, **BACKENDS[kind]) as there:
        await through_chat(there)
        await through_responses(there)
        await through_messages(there)
        chat_events(await all_of(there, asked(stream=True)))
        messages_events(await all_of(there, body_of("/v1/messages"), "/v1/messages"))
        responses_events(await all_of(there, body_of("/v1/responses"), "/v1/responses"))


async def through_chat(there: Clients) -> None:
    async with there.own.chat.completions.stream(model="m", messages=MESSAGES, tools=[TOOL]) as stream:
        completed = await stream.get_final_completion()
    choice = completed.choices[0]
    assert (choice.message.role, choice.message.content) == ("assistant", "Let me look.")
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("look", {"at": 4})
    assert (call.type, bool(call.id)) == ("function", True)


async def through_responses(there: Clients) -> None:
    async with there.own.responses.stream(model="m", input="Look.", tools=[RESPONSES]) as stream:
        answer = await stream.get_final_response()
    text, call = answer.output
    assert answer.output_text == "Let me look."
    assert text.type == "message"
    assert call.type == "function_call"
    assert (call.name, json.loads(call.arguments), bool(call.call_id)) == ("look", {"at": 4}, True)


async def through_messages(there: Clients) -> None:
    async with there.theirs.messages.stream(model="m", max_tokens=9, messages=MESSAGES, tools=[THEIRS]) as stream:
        message = await stream.get_final_message()
    text, call = message.content
    assert (text.type, call.type) == ("text", "tool_use")
    assert (call.name, call.input, bool(call.id)) == ("look", {"at": 4}, True)  # type: ignore[union-attr]
    assert (message.role, message.stop_reason, message.usage.output_tokens >= 0) == ("assistant", "tool_use", True)


def chat_events(stream: bytes) -> None:
    """All that clients were seen to insist on, chunk by chunk."""
    *events, done, rest = stream.replace(b"\r\n", b"\n").split(b"\n\n")
    assert rest == b""
    if done.startswith(b"data: {"):
        events.append(done)  # clients do without the mark of the end
    told = [json.loads(event.removeprefix(b"data: ")) for event in events]
    assert len({(one["id"], one["created"], one["model"]) for one in told if one["choices"]}) == 1
    choices = [choice for one in told for choice in one["choices"]]
    assert {one["object"] for one in told if one["choices"]} == {"chat.completion.chunk"}
    assert {choice["index"] for choice in choices} == {0}
    assert [choice["delta"].get("role") for choice in choices if choice["delta"].get("role")] == ["assistant"]
    assert choices[0]["delta"]["role"] == "assistant"
    assert [choice["finish_reason"] for choice in choices if choice.get("finish_reason")] in (["tool_calls"], ["stop"])
    first, *more = [call for choice in choices for call in choice["delta"].get("tool_calls", [])]
    assert (first["index"], first["type"], first["function"]["name"], bool(first["id"])) == (
        0,
        "function",
        "look",
        True,
    )
    assert all(call["index"] == 0 and not call.get("id") and not call["function"].get("name") for call in more)


def messages_events(stream: bytes) -> None:
    start, *blocks, delta, stop = named_events(stream)
    assert all(isinstance(start["message"]["usage"][name], int) for name in ("input_tokens", "output_tokens"))
    assert (delta["delta"]["stop_reason"], isinstance(delta["usage"]["output_tokens"], int)) == ("tool_use", True)
    assert stop["type"] == "message_stop"
    kinds = [(event["type"].removeprefix("content_block_"), event["index"]) for event in blocks]
    expected = [(kind, number) for number in (0, 1) for kind in ("start", "delta", "stop")]
    assert list(dict.fromkeys(kinds)) == expected


def responses_events(stream: bytes) -> None:
    told = named_events(stream)
    assert [event["sequence_number"] for event in told] == [*range(len(told))]
    assert (told[0]["type"], told[-1]["type"]) == ("response.created", "response.completed")
    assert len({event["response"]["id"] for event in told if "response" in event}) == 1
    assert [item["type"] for item in told[-1]["response"]["output"]] == ["message", "function_call"]


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        *cases("chat", {name: line for name, line in CHAT_SERVERS.items() if name.startswith("whole,")}),
        *cases("messages", {name: line for name, line in MESSAGES_SERVERS.items() if name.startswith("whole")}),
        *cases("ollama", {"whole": OLLAMA_SERVERS["whole"]}),
        *cases("chat", {"streamed, though asked for all at once": CHAT_SERVERS["right"]}),
        *cases("messages", {"streamed, though asked for all at once": MESSAGES_SERVERS["right"]}),
        *cases("ollama", {"streamed, though asked for all at once": OLLAMA_SERVERS["right"]}),
    ],
)
@pytest.mark.parametrize("tools", [True, False])
async def test_a_whole_reply_through_each_client(kind: str, line: Line, tools: bool) -> None:
    """Without tools a reply is not judged, and clients insist on the same."""
    async with clients(*[line] * 3, **BACKENDS[kind]) as there:
        made: Any = {"tools": [TOOL]} if tools else {}
        completed = await there.own.chat.completions.create(model="m", messages=MESSAGES, **made)
        choice = completed.choices[0]
        assert (choice.index, choice.message.role, choice.finish_reason) == (0, "assistant", "tool_calls")
        assert (bool(completed.id), completed.object, bool(completed.created)) == (True, "chat.completion", True)
        calls = choice.message.tool_calls or []
        assert [(call.type, bool(call.id)) for call in calls] == [("function", True)]
        made = {"tools": [RESPONSES]} if tools else {}
        answer = await there.own.responses.create(model="m", input="Look.", **made)
        assert [item.type for item in answer.output] == ["message", "function_call"]
        made = {"tools": [THEIRS]} if tools else {}
        message = await there.theirs.messages.create(model="m", max_tokens=9, messages=MESSAGES, **made)
        assert (bool(message.id), message.role, message.stop_reason) == (True, "assistant", "tool_use")
        assert isinstance(message.usage.output_tokens, int)
        assert message.content[1].type == "tool_use"
        assert message.content[1].id


@pytest.mark.parametrize("kind", ["chat", "ollama"])
async def test_a_right_call_without_an_id_is_clean(kind: str) -> None:
    """Ollama's calls have none."""
    line = OLLAMA_SERVERS["whole"] if kind == "ollama" else whole(without(REPLY, "id"))
    async with clients(line, **BACKENDS[kind]) as there:
        _, body, headers = await there.post("/v1/chat/completions", asked())
        assert headers["x-forge-outcome"] == "clean"
        assert json.loads(body)["choices"][0]["message"]["tool_calls"][0]["id"]


async def test_lines_of_ollamas_are_told_as_they_come() -> None:
    """Each is sent on before the next has come."""
    gate = asyncio.Event()
    line = replace(ndjson(OLLAMA), gates={1: gate})
    async with clients(line, **BACKENDS["ollama"]) as there:
        body = asked(stream=True, tools=[])
        async with there.session.post(there.url + "/v1/chat/completions", json=body) as answer:
            await answer.content.readuntil(b"Let me ")
            gate.set()
            assert b"look." in await answer.content.read()


@pytest.mark.parametrize(
    "line",
    [whole(completion("", ("look", ARGUMENTS), finish="length")), streamed(*CHAT[:-1], chunk({}, "length"), DONE)],
    ids=["whole", "streamed"],
)
async def test_a_limit_of_tokens_that_cut_off_no_call_does_not_keep_agents_from_running_it(line: Line) -> None:
    """The AI SDK and Claude Code run no call of a reply that says that it was cut off."""
    stream = line.headers[0][1] == "text/event-stream"
    async with clients(*[line] * 3) as there:
        _, chat, _ = await there.post("/v1/chat/completions", asked(stream=stream))
        _, responses, _ = await there.post("/v1/responses", body_of("/v1/responses") | {"stream": stream})
        _, messages, _ = await there.post("/v1/messages", body_of("/v1/messages") | {"stream": stream})
        assert b'"finish_reason":"tool_calls"' in chat
        assert b'"status":"completed"' in responses
        assert b'incomplete_details":{' not in responses
        assert b'"stop_reason":"tool_use"' in messages


@pytest.mark.parametrize("stream", [False, True])
async def test_a_text_that_a_limit_of_tokens_cut_off_is_an_incomplete_response(stream: bool) -> None:
    cut = completion("Let me", finish="length")
    line = streamed(*OPEN, chunk({}, "length"), DONE) if stream else whole(cut)
    async with clients(line) as there:
        _, body, _ = await there.post("/v1/responses", body_of("/v1/responses") | {"stream": stream})
        last = json.loads(body.split(b"event: response.incomplete\ndata: ")[1])["response"] if stream else None
        response = last or json.loads(body)
        assert (response["status"], response["incomplete_details"]) == (
            "incomplete",
            {"reason": "max_output_tokens"},
        )
