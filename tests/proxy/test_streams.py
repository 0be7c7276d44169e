"""Streams through the proxy: what flows at once, what is held, what a client is never shown, what keeps it waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest

from forge.backends import named
from forge.proxy import ProxyOptions, ProxyServer, service
from tests.proxy.test_proxy import ASK, LOOK, Behind, asked, behind
from tests.scripted_model import DONE, Line, ScriptedModel, called, chunk, completion, hanging, sse, streamed, whole

ROLE = sse(chunk({"role": "assistant", "content": None}))
END = sse(chunk({}, "stop"))
CALLED = sse(chunk({}, "tool_calls"))


def said(text: str) -> bytes:
    return sse(chunk({"content": text}))


@asynccontextmanager
async def streaming(
    there: Behind, body: object, path: str = "/v1/chat/completions"
) -> AsyncIterator[aiohttp.ClientResponse]:
    async with there.session.post(there.url + path, data=msgspec.json.encode(body)) as answer:
        yield answer


async def all_of(there: Behind, body: object, path: str = "/v1/chat/completions") -> bytes:
    async with streaming(there, body, path) as answer:
        assert answer.status == 200
        return await answer.read()


def deltas(stream: bytes) -> list[Any]:
    """The deltas of a stream, and why it ended."""
    told = [msgspec.json.decode(event[6:]) for event in stream.split(b"\n\n") if event.startswith(b"data: {")]
    return [choice["delta"] or choice["finish_reason"] for one in told for choice in one["choices"]]


def text_of(stream: bytes) -> str:
    return "".join(delta.get("content") or "" for delta in deltas(stream) if isinstance(delta, dict))


def calls_of(stream: bytes) -> list[tuple[str, str]]:
    made: dict[int, list[str]] = {}
    for delta in deltas(stream):
        for call in delta.get("tool_calls", ()) if isinstance(delta, dict) else ():
            one = made.setdefault(call["index"], ["", ""])
            one[0] += call["function"].get("name", "")
            one[1] += call["function"].get("arguments", "")
    return [(name, arguments) for name, arguments in made.values()]


GOOD = (
    ROLE,
    said("Let me look. "),
    sse(chunk(called("look", '{"at"'))),
    sse(chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 4}"}}]})),
    CALLED,
    DONE,
)


@pytest.mark.parametrize(
    ("events", "more"),
    [
        (GOOD, {}),
        (
            (
                ROLE,
                said("It is a tree: { } [1] <b> ok"),
                END,
                sse({"choices": [], "usage": {"prompt_tokens": 3}}),
                DONE,
            ),
            {},
        ),
        ((ROLE, said("a"), END, DONE), {"tools": []}),
        ((b'data: {"choices":[{"index":1,"delta":{"content":"<tool_call>"}}],  "odd":1}\n\n', END, DONE), {"n": 2}),
        ((b": a comment\n\n", ROLE.replace(b"\n\n", b"\r\n\r\n"), said("a"), END, DONE), {}),
    ],
    ids=["a call", "text", "no tools", "choices", "line ends"],
)
async def test_a_clean_stream_passes_byte_for_byte(events: tuple[bytes, ...], more: dict[str, object]) -> None:
    async with behind(streamed(*events)) as there:
        assert await all_of(there, asked(stream=True, **more)) == b"".join(events)
        assert there.model.body(0) == asked(stream=True, **more)


async def test_text_and_reasoning_flow_while_the_reply_comes_and_calls_wait_until_it_is_whole() -> None:
    gate = asyncio.Event()
    thought = sse(chunk({"reasoning_content": "Hm."}))
    first = (ROLE, thought, said("Let me look.\n"))
    call = sse(chunk(called("look", '{"at": 4}')))
    async with (
        behind(streamed(*first, call, CALLED, DONE, gate4=gate)) as there,
        streaming(there, asked(stream=True)) as answer,
    ):
        assert await answer.content.readexactly(len(b"".join(first))) == b"".join(first)
        gate.set()
        assert await answer.content.read() == b"".join((call, CALLED, DONE))


async def test_a_call_in_the_text_is_never_shown_as_text() -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {"at": 4}}\n</tool_call>'
    events = (ROLE, said("I will look.\n"), *(said(letter) for letter in call), END, DONE)
    async with behind(streamed(*events)) as there:
        stream = await all_of(there, asked(stream=True))
        assert text_of(stream).strip() == "I will look."
        ((name, arguments),) = calls_of(stream)
        assert (name, msgspec.json.decode(arguments)) == ("look", {"at": 4})
        assert deltas(stream)[-1] == "tool_calls"
        assert {msgspec.json.decode(event[6:])["id"] for event in stream.split(b"\n\n")[:-2]} == {"chatcmpl-b"}


async def test_a_retry_is_hidden_and_what_was_said_is_not_said_again() -> None:
    bad = (ROLE, said("Let me look. "), sse(chunk(called("look", '{"at": "the door"}'))), CALLED, DONE)
    async with behind(streamed(*bad), streamed(*GOOD)) as there:
        stream = await all_of(there, asked(stream=True))
        assert text_of(stream) == "Let me look. "
        assert calls_of(stream) == [("look", '{"at": 4}')]
        assert stream.count(b'"role"') == 1
        assert stream.endswith(DONE)
        assert there.model.body(1)["stream"] is True


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
async def test_a_silent_backend_is_waited_for_with_events_of_the_protocol(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BEGIN_AFTER", 0.05)
    monkeypatch.setattr(service, "KEEP_ALIVE", 0.05)
    gate = asyncio.Event()
    async with behind(streamed(*GOOD, gate0=gate)) as there, streaming(there, body_of(path), path) as answer:
        assert answer.status == 200
        first = await answer.content.readuntil(b"\n\n")
        second = await answer.content.readuntil(b"\n\n")
        assert b"data: {" in first
        assert b"data: {" in second
        gate.set()
        rest = await answer.content.read()
        assert b"look" in rest
        if path == "/v1/messages":
            assert (first + second + rest).count(b"event: message_start") == 1
        if path == "/v1/chat/completions":
            assert len({msgspec.json.decode(one[6:])["id"] for one in (first + second + rest).split(b"\n\n")[:-2]}) == 1


def body_of(path: str) -> dict[str, object]:
    schema = LOOK["function"]["parameters"]
    match path:
        case "/v1/messages":
            return {
                "model": "m",
                "max_tokens": 9,
                "stream": True,
                "messages": [ASK],
                "tools": [{"name": "look", "input_schema": schema}],
            }
        case "/v1/responses":
            return {
                "model": "m",
                "stream": True,
                "input": "Look.",
                "tools": [{"type": "function", "name": "look", "parameters": schema}],
            }
        case _:
            return asked(stream=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (streamed(ROLE, said("Half a "), breaks=True), b"broke"),
        (streamed(ROLE, said("Half a "), sse({"error": {"message": "out of memory", "code": 500}})), b"out of memory"),
        (streamed(ROLE, said("Half a ")), b"ended before"),
    ],
    ids=["broken", "reported", "cut off"],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
async def test_a_stream_that_fails_ends_with_the_protocols_error(line: Line, words: bytes, path: str) -> None:
    async with behind(line) as there:
        stream = await all_of(there, body_of(path), path)
        last = stream.rstrip().split(b"\n\n")[-1]
        assert b"Half" in stream
        assert words in last
        assert {
            "/v1/chat/completions": b'"error"',
            "/v1/messages": b"event: error",
            "/v1/responses": b"response.failed",
        }[path] in last


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("line", [streamed(), streamed(ROLE, said("Half a ")), streamed(b"data: 7\n\n")])
async def test_a_reply_that_is_not_judged_may_not_be_cut_off_unseen_either(path: str, line: Line) -> None:
    async with behind(line) as there, streaming(there, {**body_of(path), "tools": []}, path) as answer:
        got = await answer.read()
        assert answer.status == 502 or (answer.status == 200 and b"error" in got.rstrip().split(b"\n\n")[-1])


async def test_a_whole_answer_to_a_request_for_a_stream_is_streamed() -> None:
    async with behind(whole(completion("Hello."))) as there:
        assert text_of(await all_of(there, asked(stream=True))) == "Hello."


@pytest.mark.parametrize("more", [{"n": 2}, {"logprobs": True}])
async def test_so_is_one_to_a_request_of_which_the_servers_own_words_pass(more: dict[str, object]) -> None:
    async with behind(whole(completion("Hello.")), streamed(ROLE, said("Hi."), END)) as there:
        assert text_of(await all_of(there, asked(stream=True, **more))) == "Hello."
        assert await all_of(there, asked(stream=True, **more)) == b"".join((ROLE, said("Hi."), END))


async def test_200_streams_at_once() -> None:
    gate = asyncio.Event()
    lines = [streamed(*GOOD, gate2=gate) for _ in range(200)]
    async with behind(*lines, slots=200) as there:
        asking = [asyncio.create_task(all_of(there, asked(stream=True))) for _ in lines]
        while len(there.model.asked) < len(lines):
            await there.get("/forge/health")
        gate.set()
        # Not the same bytes: a stream that waited long on a slow machine was begun by the proxy itself.
        wanted = b"".join(GOOD)
        for got in await asyncio.gather(*asking):
            assert (calls_of(got), deltas(got)[-1], got.count(DONE)) == (calls_of(wanted), "tool_calls", 1)


@pytest.mark.parametrize(
    ("parts", "ending"),
    [((said("A tree."),), "stop"), ((sse(chunk(called("look", '{"at": 4}'))),), "tool_calls")],
    ids=["text", "call"],
)
@pytest.mark.parametrize("tools", [[LOOK], []], ids=["judged", "passed"])
async def test_a_stream_that_the_server_ends_without_a_reason_gets_one(
    parts: tuple[bytes, ...], ending: str, tools: list[Any]
) -> None:
    async with behind(streamed(ROLE, *parts, DONE)) as there:
        got = await all_of(there, {"model": "m", "messages": [ASK], "tools": tools, "stream": True})
        assert got.startswith(ROLE)
        assert (text_of(got) == "A tree.") != (calls_of(got) == [("look", '{"at": 4}')])
        assert deltas(got)[-1] == ending
        assert got.count(DONE) == 1
        assert got.endswith(DONE)


async def test_a_proxy_that_stops_tells_the_clients_that_wait_longer_than_it_does() -> None:
    script = (hanging(ROLE, said("Well, ")), hanging())
    asking: dict[str, object] = {"model": "m", "max_tokens": 9, "messages": [ASK]}
    async with ScriptedModel(*script, slots=8) as model, aiohttp.ClientSession() as session:
        async with ProxyServer(named(model.url, ""), ProxyOptions(port=0, grace=0)) as proxy:
            there = Behind(model, session, proxy.url)
            streamed_answer = await session.post(there.url + "/v1/messages", json={**asking, "stream": True})
            await streamed_answer.content.readuntil(b"Well")
            model.came.clear()
            whole_answer = asyncio.create_task(there.post("/v1/messages", asking))
            await model.came.wait()
        assert b"event: error" in await streamed_answer.read()
        status, body, _ = await whole_answer
        assert (status, b"stopped" in body) == (503, True)
