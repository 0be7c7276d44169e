"""Streaming end to end: over a real connection, to a watcher, through a run."""

import asyncio
import json
import re
from collections.abc import Callable

import httpx
import msgspec
import pytest

from forge import run, run_sync
from forge.backends import Server
from forge.callbacks import OnChunk
from forge.errors import WatcherError
from forge.interpreters.http import HttpSender
from forge.interpreters.scripted import Scripted, call
from forge.masking import NOTHING, Hidden
from stages.effect import Fault, RawCall, Replied, Reply, Request, Send, Undelivered, Usage
from stages.message import User
from stages.retry import Backoff
from stages.state import State
from stages.wire.deltas import (
    CallStarted,
    Decoder,
    Delta,
    Ended,
    ReasoningDelta,
    Retry,
    StreamRead,
    TextDelta,
    gather_reply,
)
from stages.wire.wires import ANTHROPIC, OLLAMA, OPENAI, Wire
from tests.flows import Desk
from tests.misbehaving import GOOD
from tests.patients import recording
from tests.scripted_model import chunk, completion, sse
from tests.streaming import ANSWER, Script, Streams, chunked, head, said, sends, streaming, whole

QUICK, KEY = Backoff(first=0.001), "sk-very-secret-12"
SEND = Send(request=Request(), turn=1)


def outcome(
    *scripts: Script,
    on_chunk: OnChunk | None = None,
    wire: Wire = OPENAI,
    idle: float = 30.0,
    keys: Hidden = NOTHING,
) -> tuple[Replied | Undelivered, list[Delta], Streams]:
    """What a request to a server with these scripts comes to, what a watcher was told, and the server."""
    told: list[Delta] = []

    async def go() -> tuple[Replied | Undelivered, list[Delta], Streams]:
        async with streaming(*scripts) as server, httpx.AsyncClient(timeout=idle) as client:
            send = HttpSender(client, server.url, QUICK, wire, keys=keys)
            return await send(SEND, on_chunk or told.append), told, server

    return asyncio.run(go())


def replied(found: Replied | Undelivered) -> Reply:
    assert isinstance(found, Replied)
    return found.reply


def fault(found: Replied | Undelivered) -> Fault:
    assert isinstance(found, Undelivered)
    return found.fault


def test_a_stream_is_told_as_it_comes_and_makes_the_reply() -> None:
    found, told, server = outcome(whole(ANSWER))
    assert replied(found) == ANSWER
    assert "".join(delta.text for delta in told if isinstance(delta, TextDelta)) == "hello there"
    assert "".join(delta.text for delta in told if isinstance(delta, ReasoningDelta)) == "let me see"
    assert told[-1] == Ended(finish="stop", usage=ANSWER.usage)
    asked = json.loads(server.bodies[0])
    assert (asked["stream"], asked["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize("streamed", [True, False])
def test_a_key_that_the_server_repeats_is_masked_before_anybody_is_told(streamed: bool) -> None:
    made = RawCall(id="c1", name="look", arguments=f'{{"what":"{KEY}"}}')
    reply = Reply(text=f"It is {KEY}, see?", reasoning=f"My key: {KEY}", calls=(made,), finish="tool_calls")
    answer = msgspec.json.encode(completion(reply.text, (made.name, made.arguments)))
    script = whole(reply) if streamed else sends(head("application/json"), chunked(answer))
    found, told, _ = outcome(script, keys=Hidden([KEY]))
    assert (replied(found).text, replied(found).calls[0].arguments) == ("It is ***, see?", '{"what":"***"}')
    assert "".join(delta.text for delta in told if isinstance(delta, TextDelta)) == "It is ***, see?"
    assert not re.search("sk-|secret", repr(found) + repr(told))


def test_without_a_watcher_nothing_is_streamed() -> None:
    async def go() -> bytes:
        async with streaming(sends(head("application/json"), chunked(GOOD))) as server:
            async with httpx.AsyncClient() as client:
                await HttpSender(client, server.url, QUICK)(SEND)
            return server.bodies[0]

    assert b"stream" not in asyncio.run(go())


def test_an_async_watcher_is_waited_for() -> None:
    seen: list[Delta] = []

    async def watch(delta: Delta) -> None:
        await asyncio.sleep(0)
        seen.append(delta)

    found, _, _ = outcome(whole(ANSWER), on_chunk=watch)
    assert replied(found) == ANSWER
    assert seen[-1] == Ended(finish="stop", usage=ANSWER.usage)


def test_each_delta_is_told_before_the_next_chunk_has_come() -> None:
    """The server holds back the rest until the watcher has seen the beginning."""
    first, rest = said(ANSWER)[:400], said(ANSWER)[400:]
    seen = asyncio.Event()

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head() + chunked(first, end=False))
        await seen.wait()
        writer.write(chunked(rest))

    found, _, _ = outcome(script, on_chunk=lambda _: seen.set())
    assert replied(found) == ANSWER


def test_reasoning_in_tags_is_told_apart_and_the_reply_keeps_the_tags() -> None:
    tagged = Reply(text="<think>hm</think>Yes.", usage=ANSWER.usage)
    found, told, _ = outcome(whole(tagged))
    assert replied(found) == tagged
    assert "".join(delta.text for delta in told if isinstance(delta, ReasoningDelta)).strip() == "hm"
    assert "".join(delta.text for delta in told if isinstance(delta, TextDelta)).strip() == "Yes."


BROKEN = {
    "closed in the middle": sends(head(), chunked(said(ANSWER)[:500], end=False), close=True),
    "an error in the stream": sends(
        head(), chunked(said(ANSWER)[:500], b'data: {"error":{"code":500,"message":"x"}}\n\n')
    ),
    "an error in a field of its own": sends(head(), chunked(b'error: {"code":503,"message":"busy"}\n\n')),
    "a chunk that is none": sends(head(), chunked(b"data: {nope\n\n")),
    "busy": sends(head("application/json", status="429 Too Many Requests"), chunked(b"{}")),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_stream_is_announced_and_tried_again(broken: Script) -> None:
    found, told, server = outcome(broken, whole(ANSWER))
    assert replied(found) == ANSWER
    retries = [place for place, delta in enumerate(told) if isinstance(delta, Retry)]
    assert len(retries) == 1
    assert len(server.bodies) == 2
    # What comes after the RETRY is the whole reply, as if nothing had been before.
    _, clean, _ = outcome(whole(ANSWER))
    assert told[retries[0] + 1 :] == clean


ENDS = {
    "reported": (sends(head(), chunked(b'data: {"error":{"code":400,"message":"x"}}\n\n')), "reported", 1, 400),
    "html": (sends(head("text/html"), chunked(b"<html>It works!</html>")), "malformed", 2, None),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS.keys())
def test_a_stream_that_never_comes_whole_is_a_typed_fault(case: tuple[Script, str, int, int | None]) -> None:
    script, kind, attempts, status = case
    found, told, _ = outcome(script)
    assert isinstance(found, Undelivered)
    assert (found.fault.kind, found.attempts, found.fault.status) == (kind, attempts, status)
    assert sum(isinstance(delta, Retry) for delta in told) == attempts - 1


def test_a_server_that_stops_talking_is_given_up_when_the_idle_time_is_over() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head() + chunked(said(ANSWER)[:500], end=False))
        await reader.read(1)

    found, told, _ = outcome(script, idle=0.5)
    assert fault(found).kind == "timeout"
    assert any(isinstance(delta, ReasoningDelta) for delta in told)


def test_a_server_that_cannot_stream_is_understood_all_the_same() -> None:
    found, told, _ = outcome(sends(head("application/json; charset=utf-8"), chunked(GOOD)))
    assert replied(found).text == "hello"
    assert told == [TextDelta(text="hello"), Ended(finish="stop", usage=replied(found).usage)]


def test_the_connection_is_kept_for_the_next_request() -> None:
    async def go() -> int:
        async with streaming(whole(ANSWER)) as server, httpx.AsyncClient() as client:
            interpret = HttpSender(client, server.url, QUICK)
            for _ in range(3):
                await interpret(SEND, lambda _: None)
            return server.connections

    assert asyncio.run(go()) == 1


def test_a_reply_is_not_held_up_by_a_server_that_leaves_the_connection_open() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head() + chunked(said(ANSWER), end=False))
        await reader.read(1)

    found, _, _ = outcome(script)
    assert replied(found) == ANSWER


def test_a_stream_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forge.interpreters.http.STREAM_LIMIT", 100_000)

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head())
        while True:
            writer.write(chunked(b": ping\n" * 1000, end=False))
            await writer.drain()

    assert fault(outcome(script)[0]).kind == "too_large"


def test_a_stream_of_countless_pieces_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a few bytes on the wire, and a hundred in memory."""
    monkeypatch.setattr("forge.interpreters.http.PIECES_LIMIT", 1000)

    async def script(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head())
        while True:
            writer.write(chunked(b'data: {"choices":[{"delta":{"content":"a"}}]}\n' * 100, end=False))
            await writer.drain()

    found = fault(outcome(script)[0])
    assert (found.kind, found.detail) == ("too_large", "the stream has more than 1000 pieces of a reply")


@pytest.mark.parametrize("begun", [b"", head() + chunked(said(ANSWER)[:500], end=False)], ids=["head", "body"])
def test_cancelling_closes_the_request_and_the_server_sees_it(begun: bytes) -> None:
    async def go() -> bytes:
        asked, left = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(begun)
            asked.set()
            left.set_result(await reader.read(1))

        async with streaming(script) as server, httpx.AsyncClient() as client:
            sending = asyncio.ensure_future(HttpSender(client, server.url, QUICK)(SEND, lambda _: None))
            await asked.wait()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            gone: bytes = await left
            return gone

    assert asyncio.run(go()) == b""


def failing(error: Exception) -> Callable[[Delta], None]:
    def watch(_: Delta) -> None:
        raise error

    return watch


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("y"), httpx.ReadError("z"), OSError("w")])
def test_a_watcher_that_fails_is_not_taken_for_the_transport(error: Exception) -> None:
    with pytest.raises(WatcherError, match="on_chunk failed at a ReasoningDelta") as caught:
        outcome(whole(ANSWER), on_chunk=failing(error))
    assert caught.value.__cause__ is error


def test_a_run_streams_each_of_its_replies_and_its_state_is_that_of_a_run_that_does_not() -> None:
    script = [call("look", what="a"), call("finish", result="x")]

    async def go(on_chunk: OnChunk | None) -> tuple[State, list[bytes]]:
        answers = [msgspec.structs.replace(reply, usage=ANSWER.usage) for reply in script]
        scripts = [whole(reply) for reply in answers]
        if on_chunk is None:
            bodies = (streams_whole(reply) for reply in answers)
            scripts = [sends(head("application/json"), chunked(body)) for body in bodies]
        async with streaming(*scripts) as server:
            backend = Server(server.url, profile="openai-compatible", model="m", context_tokens=4096)
            desk = Desk().workflow
            if on_chunk is None:
                return (await run(desk, "Go.", backend=backend)).unwrap().state, server.bodies
            return (await run(desk, "Go.", backend=backend, on_chunk=on_chunk)).unwrap().state, server.bodies

    told: list[Delta] = []
    streamed, bodies = asyncio.run(go(told.append))
    plain, _ = asyncio.run(go(None))
    assert streamed.history == plain.history
    assert streamed.ledger == plain.ledger
    assert [delta.name for delta in told if isinstance(delta, CallStarted)] == ["look", "finish"]
    assert all(json.loads(body)["stream"] for body in bodies)


def streams_whole(reply: Reply) -> bytes:
    from tests.property.servers import openai_reply

    return openai_reply(reply)


def test_a_backend_that_cannot_stream_tells_of_each_reply_in_one_go() -> None:
    told: list[Delta] = []
    model = Scripted(["<think>hm</think>No.", call("look", what="a"), call("finish")])
    run_sync(Desk().workflow, "Go.", backend=model, on_chunk=told.append).unwrap()
    assert [delta.name for delta in told if isinstance(delta, CallStarted)] == ["look", "finish"]
    assert sum(isinstance(delta, Ended) for delta in told) == 3


def read(decoder: Decoder, data: bytes) -> Reply | Fault:
    decoder, pieces = decoder.advance(data)
    return gather_reply((*pieces, *decoder.finish()))


def calling(index: int | None, id: str | None, name: str | None, arguments: object) -> dict[str, object]:  # noqa: A002
    given = {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
    return chunk({"tool_calls": [{key: value for key, value in given.items() if value is not None}]})


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        # OpenAI's own way is in the laws; these are servers that do it differently.
        ([calling(None, "a", "f", "{"), calling(None, None, None, "}")], [("a", "f", "{}")]),
        ([calling(None, "a", "f", "{}"), calling(None, "b", "g", "{}")], [("a", "f", "{}"), ("b", "g", "{}")]),
        ([calling(0, "a", "f", "{}"), calling(0, "b", "f", "{}")], [("a", "f", "{}"), ("b", "f", "{}")]),
        ([calling(0, "a", "f", "{"), calling(0, "a", "f", "}")], [("a", "f", "{}")]),
        ([calling(0, "a", "get_", ""), calling(0, None, "it", "{}")], [("a", "get_it", "{}")]),
        ([calling(1, "b", "g", "{}"), calling(0, "a", "f", "{}")], [("b", "g", "{}"), ("a", "f", "{}")]),
        ([calling(0, "a", "f", {"x": 1})], [("a", "f", '{"x":1}')]),
        ([calling(0, "a", "f", None)], [("a", "f", "")]),
        ([calling(0, None, "f", "{}")], [("", "f", "{}")]),
    ],
)
def test_servers_that_stream_calls_in_ways_of_their_own(
    events: list[dict[str, object]], calls: list[tuple[str, str, str]]
) -> None:
    found = read(OPENAI.stream, b"".join(map(sse, (*events, chunk({}, "tool_calls")))))
    assert isinstance(found, Reply)
    assert [(call.id, call.name, call.arguments) for call in found.calls] == calls


@pytest.mark.parametrize(
    ("wire", "data", "status", "says"),
    [
        (OPENAI, sse({"error": {"message": "no slot", "code": 503, "type": "unavailable_error"}}), 503, "no slot"),
        (OPENAI, sse({"error": "no slot"}), None, "no slot"),
        (OPENAI, sse({"object": "error", "message": "too long", "code": 400}), 400, "too long"),
        (OPENAI, b'error: {"code":400,"message":"too long"}\n\n', 400, "too long"),
        (OLLAMA, b'{"error":"the model runner has stopped"}\n', None, "runner has stopped"),
        (
            ANTHROPIC,
            sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            529,
            "Over",
        ),
        (ANTHROPIC, sse({"type": "error", "error": {"type": "new_error", "message": "Hm"}}), None, "new_error: Hm"),
    ],
)
def test_errors_in_a_stream_are_faults(wire: Wire, data: bytes, status: int | None, says: str) -> None:
    found = read(wire.stream, data)
    assert isinstance(found, Fault)
    assert (found.kind, found.status) == ("reported", status)
    assert says in found.detail
    assert gather_reply(pieces_after(wire, data)) == found


def pieces_after(wire: Wire, data: bytes) -> StreamRead:
    """What is read where the stream goes on after its error as if nothing had been."""
    return wire.stream.advance(data + sse(chunk({"content": "x"}, "stop")) + b"data: [DONE]\n\n")[1]


def test_the_text_of_several_blocks_is_parted_as_in_a_whole_message() -> None:
    def block(index: int, kind: str, text: str) -> list[dict[str, object]]:
        field = {"text": "text", "thinking": "thinking"}[kind]
        return [
            {"type": "content_block_start", "index": index, "content_block": {"type": kind, field: ""}},
            {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", field: text}},
            {"type": "content_block_delta", "index": index, "delta": {"type": "signature_delta", "signature": "s"}},
            {"type": "content_block_stop", "index": index},
        ]

    blocks = [*block(0, "thinking", "a"), *block(1, "text", "b"), *block(2, "thinking", "c"), *block(3, "text", "d")]
    events = (*blocks, {"type": "of the future"}, {"type": "message_stop"})
    found = read(ANTHROPIC.stream, b"".join(map(sse, events)))
    assert isinstance(found, Reply)
    assert (found.reasoning, found.text) == ("a\n\nc", "b\n\nd")


@pytest.mark.parametrize("wire", [OPENAI, OLLAMA, ANTHROPIC], ids=lambda wire: wire.name)
def test_a_request_that_asks_for_a_stream_is_the_request_with_that_field(wire: Wire) -> None:
    from stages.wire.sampling import Sampling

    history = (User(text="Hi."),)
    request = Request(head=wire.head("m", Sampling(), history), messages=wire.messages(history))
    plain, asked = json.loads(request.body), json.loads(wire.streamed(request))
    assert asked["stream"] is True
    assert {k: v for k, v in asked.items() if not k.startswith("stream")} == {
        k: v for k, v in plain.items() if not k.startswith("stream")
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain_stream", Reply(text="Hello! How can I assist you today?", usage=Usage(prompt=35, completion=10))),
        ("tagged_call_stream", Reply(usage=Usage(prompt=198, completion=20))),
        ("tagged_call_cut_stream", Reply(finish="length", usage=Usage(prompt=198, completion=12))),
    ],
)
def test_transformers_serve_ends_a_stream_without_done(name: str, expected: Reply) -> None:
    """Recorded. It leaves out a call that it cannot read: an empty reply, after which the model is asked again."""
    _, kind, body = recording("transformers", name)
    found, _, _ = outcome(sends(head(kind), chunked(body), close=True))
    assert replied(found) == expected
