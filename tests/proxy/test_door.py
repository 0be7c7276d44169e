"""The proxy among strangers: clients that flood, dawdle or take nothing, pages of others, odd backends."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import openai
import pytest

from forge.backends import named
from forge.door.asgi import AsgiSend, Receive, Scope
from forge.door.listening import Application, AppServer
from forge.door.options import Listening
from forge.proxy import ProxyOptions, ProxyServer, service
from tests.proxy.test_proxy import LOOK, asked, behind
from tests.scripted_model import Line, ScriptedModel, chunk, completion, sse, whole

HEAD = 64 * 1024
"""Bytes that a head may have."""


@asynccontextmanager
async def dialled(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection on which anything may be said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        yield reader, writer
    finally:
        writer.close()


async def told(url: str, said: bytes) -> bytes:
    """All that the proxy answers, until it closes the connection."""
    async with dialled(url) as (reader, writer):
        writer.write(said)
        return await reader.read()


def get(path: str = "/forge/health", host: str = "127.0.0.1", **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"host: {host}", "connection: close", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


def post(body: object, path: str = "/v1/chat/completions") -> bytes:
    raw = msgspec.json.encode(body)
    head = b"POST %b HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    return head % (path.encode(), len(raw)) + raw


def filled(size: int, begin: bytes, end: bytes) -> bytes:
    return begin + b"y" * (size - len(begin) - len(end)) + end


CLOSE = b"connection: close\r\n"
OPENED = b"GET /forge/health HTTP/1.1\r\n" + CLOSE
CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\nauthorization: Bearer k\r\ntransfer-encoding: chunked\r\n\r\n"

HEADS: dict[str, Callable[[int], bytes]] = {
    "header lines": lambda size: filled(size, OPENED + b"x: y\r\n" * 3000 + b"x: ", b"\r\n\r\n"),
    "one header": lambda size: filled(size, OPENED + b"x: ", b"\r\n\r\n"),
    "the name of a header": lambda size: filled(size, OPENED, b": x\r\n\r\n"),
    "the address": lambda size: filled(size, b"GET /forge/health?", b" HTTP/1.1\r\n" + CLOSE + b"\r\n"),
}


@pytest.mark.parametrize("what", HEADS)
async def test_a_head_is_taken_to_its_bound_and_refused_beyond_before_the_key_is_asked_for(what: str) -> None:
    async with behind(api_key="k") as there:
        assert (await told(there.url, HEADS[what](HEAD))).startswith(b"HTTP/1.1 200 ")
        assert (await told(there.url, HEADS[what](HEAD + 1))).startswith(b"HTTP/1.1 431 ")


async def test_trailers_and_what_stands_around_chunks_have_the_same_bound() -> None:
    async with behind(api_key="k") as there:
        assert b"HTTP/1.1 431 " in await told(there.url, CHUNKED + b"1\r\n{\r\n0\r\n" + b"x: y\r\n" * 30_000)
        assert b"HTTP/1.1 431 " in await told(there.url, CHUNKED + b"1;" + b"y" * 3 * HEAD)
        assert (await told(there.url, get())).startswith(b"HTTP/1.1 200 ")


async def test_a_head_of_the_greatest_size_may_have_a_body_and_a_body_may_be_larger_than_a_head() -> None:
    body = msgspec.json.encode(asked(messages=[{"role": "user", "content": "x" * 5 * HEAD}]))
    begin = b"POST /v1/chat/completions HTTP/1.1\r\n" + CLOSE + b"content-length: %d\r\nx: " % len(body)
    async with behind(whole(completion("hi"))) as there:
        assert (await told(there.url, filled(HEAD, begin, b"\r\n\r\n") + body)).startswith(b"HTTP/1.1 200 ")
        assert there.model.asked == [body]


async def test_a_head_without_end_is_answered_while_it_comes() -> None:
    async with behind() as there, dialled(there.url) as (reader, writer):
        answer = asyncio.create_task(reader.read())
        writer.write(OPENED)
        for _ in range(64):
            if not answer.done():
                writer.write(b"x: y\r\n" * 100_000)
                await writer.drain()
        assert (await answer).startswith(b"HTTP/1.1 431 ")


WHOLE = b"GET /forge/health HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"GET /for", b"HTTP/1.1 408 "),
        (b"GET / HTTP/1.1\r\nx: y\r\n", b"HTTP/1.1 408 "),
        (b"\r\n", b"HTTP/1.1 408 "),
        (b"", b""),  # browsers connect and say nothing; they would take words for the answer to what they ask then
    ],
)
async def test_a_head_that_does_not_come_ends_the_connection(said: bytes, answer: bytes) -> None:
    async with behind(api_key="k", request_timeout=0.05) as there:
        assert (await told(there.url, said))[:13] == answer


async def test_a_head_that_comes_byte_by_byte_ends_all_the_same_on_a_kept_connection_too() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /?")
        while True:
            writer.write(b"y")
            await asyncio.sleep(0.01)

    async with behind(request_timeout=0.3) as there, dialled(there.url) as (reader, writer):
        writer.write(WHOLE)
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        dripping = asyncio.create_task(drip(writer))
        assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
        dripping.cancel()


async def test_a_line_end_behind_a_body_cuts_off_no_answer() -> None:
    """Old clients send one too many."""
    gate = asyncio.Event()
    line = msgspec.structs.replace(whole(completion("At last.")), gates={0: gate})
    async with behind(line, request_timeout=0.05) as there, dialled(there.url) as (reader, writer):
        writer.write(post(asked()))
        await there.model.came.wait()
        writer.write(b"\r\n")
        assert (await told(there.url, b"GET"))[:13] == b"HTTP/1.1 408 "  # so its time is over as well
        gate.set()
        assert b"At last." in await reader.read()


@pytest.mark.parametrize("head", [b"content-length: 100\r\n\r\n{", b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"])
async def test_a_body_that_stays_out_ends_the_connection(head: bytes) -> None:
    async with behind(request_timeout=0.05) as there:
        answer = await told(there.url, b"POST /v1/messages HTTP/1.1\r\n" + head)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert answer.count(b"HTTP/1.1") == 1
    async with behind(request_timeout=0.05, api_key="k") as there:
        answer = await told(there.url, b"POST /v1/messages HTTP/1.1\r\n" + head)
        assert (answer[9:12], answer.count(b"HTTP/1.1")) == (b"401", 1)  # the rest is not waited for either


@pytest.mark.parametrize("tools", [[], [LOOK]])
async def test_a_client_that_takes_nothing_gives_up_its_slot(tools: list[object]) -> None:
    async with (
        flooded(sse(chunk({"content": "x" * 10_000 + "\n"})), slots=1, stall_timeout=0.2) as url,
        dialled(url) as (_, writer),
    ):
        request = post(asked(stream=True, tools=tools))
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # as asyncio.Transport
        writer.write(request)
        async with dialled(url) as (reader, other):
            other.write(request)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            await reader.readuntil(b"xxx")


class Flooding(ScriptedModel):
    """A model server whose streams have this part again and again, without end."""

    def __init__(self, part: bytes) -> None:
        super().__init__(*[_FLOOD] * 2)
        self._part = part

    async def _tell(self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if line is not _FLOOD:
            return await super()._tell(line, reader, writer)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            writer.write(self._part)
            await writer.drain()


_FLOOD = whole(b"")


@asynccontextmanager
async def flooded(part: bytes, **options: Any) -> AsyncIterator[str]:
    """The address of a proxy before such a server."""
    async with Flooding(part) as model, ProxyServer(named(model.url), ProxyOptions(port=0, **options)) as proxy:
        yield proxy.url


FLOODS = {
    "comments": b":\n\n" * 5000,
    "comments with CRLF": b": c\r\n\r\n" * 5000,
    "empty events": b"data: {}\n\n" * 5000,
    "nothing of an event stream": b"x\n\n" * 5000,
    "after a first word": sse(chunk({"content": "<"})) + b"id: 1\n\n" * 5000,
}


@pytest.mark.parametrize(("what", "tools"), [*zip(FLOODS, ([], [LOOK], [], [LOOK], [LOOK]), strict=True)])
async def test_a_flood_of_tiny_events_leaves_others_their_turn(what: str, tools: list[object]) -> None:
    async def drained(reader: asyncio.StreamReader) -> None:
        while await reader.read(1 << 16):
            pass

    async with (
        flooded(FLOODS[what]) as url,
        dialled(url) as (reader, writer),
    ):
        writer.write(post(asked(stream=True, tools=tools)))
        taking = asyncio.create_task(drained(reader))
        for _ in range(5):
            assert (await told(url, get())).startswith(b"HTTP/1.1 200 ")
        taking.cancel()


HOSTS = {
    "127.0.0.1:8081": 200,
    "127.9.9.9": 200,
    "[::1]:8081": 200,
    "LOCALHOST:1": 200,
    "mine.example:8081": 200,
    "evil.example": 403,
    "evil.example:8081": 403,
    "127.0.0.1.evil.example": 403,
    "localhost@evil.example": 403,
    "192.0.2.7": 403,
    "[": 403,
}


@pytest.mark.parametrize("path", ["/v1/models", "/props", "/metrics"])
async def test_without_a_key_a_page_whose_name_leads_here_learns_nothing(path: str) -> None:
    async with behind(origins=("https://mine.example",)) as there:
        answers = {host: await told(there.url, get(path, host)) for host in HOSTS}
        assert {host: int(answer[9:12]) for host, answer in answers.items()} == HOSTS
        assert {b"--origin" in answers[host] for host, status in HOSTS.items() if status == 403} == {True}


async def test_who_has_a_key_may_use_any_name_and_a_client_of_http_1_0_needs_none() -> None:
    async with behind(api_key="k") as there:
        assert b" 200 " in (await told(there.url, get("/v1/models", "models.lan", authorization="Bearer k")))[:20]
    async with behind() as there:
        assert b" 200 " in (await told(there.url, b"GET /v1/models HTTP/1.0\r\n\r\n"))[:20]
    async with behind(origins=("*",)) as there:
        assert b" 200 " in (await told(there.url, get("/v1/models", "models.lan")))[:20]


async def test_a_key_may_have_letters_outside_ascii() -> None:
    async with behind(api_key="schlüssel") as there:
        for key, status in (("schlüssel", b" 200 "), ("schlussel", b" 401 ")):
            said = b"GET /v1/models HTTP/1.1\r\n" + CLOSE + f"x-api-key: {key}\r\n\r\n".encode()
            assert status in (await told(there.url, said))[:20]


@pytest.mark.parametrize("origin", ["http://[", "null"])
async def test_an_origin_that_is_none_is_refused_and_logged(origin: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "forge.proxy")
    async with behind() as there:
        assert (await told(there.url, get("/v1/models", origin=origin))).startswith(b"HTTP/1.1 403 ")
    assert any("GET /models 403" in message for message in caplog.messages)


NO_EVENTS: dict[str, bytes] = {
    "a page": b"<html>no</html>",
    "a page with blank lines": b"<html>\n\n<p>no: this is not it</p>\n\n</html>\n",
    "text": b"Internal error\n",
    "packed": gzip.compress(sse(chunk({"content": "hi"}))),
    "bytes": bytes(range(256)) * 40,
    "an event that breaks off": b'data: {"choices":[{"index":0,"delta":{"content":"Hal',
    "an event without a blank line": b'data: {"choices":[{"index":0,"delta":{"content":"Half"}}]}\n',
    "a comment without an end": b": still here",
    "a field without an end": b"id: 7",
}


@pytest.mark.parametrize("what", NO_EVENTS)
@pytest.mark.parametrize(("begun", "tools"), [(False, False), (True, True)])
async def test_an_error_in_a_stream_is_an_event_of_its_own_whatever_came_before_it(
    what: str, begun: bool, tools: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that sees neither a word nor an error takes that for the end of its work."""
    if begun:
        monkeypatch.setattr(service, "BEGIN_AFTER", 0.02)
    gate = asyncio.Event()
    line = Line(
        parts=(NO_EVENTS[what],),
        headers=(("content-type", "text/html"), ("content-encoding", "gzip"))[: 1 + (what == "packed")],
        gates={0: gate} if begun else {},
    )
    async with behind(line, line) as there:
        client = openai.AsyncOpenAI(base_url=there.url + "/v1", api_key="k", max_retries=0)
        made: Any = {"tools": [LOOK]} if tools else {}

        async def reply() -> None:
            """Where the stream has begun, it was with an event without content."""
            stream = await client.chat.completions.create(
                model="m", stream=True, messages=[{"role": "user", "content": "x"}], **made
            )
            gate.set()
            async for piece in stream:
                assert not piece.choices or piece.choices[0].delta.content in (None, "", "Half")

        with pytest.raises(openai.APIError) as error:
            await reply()
        assert what != "packed" or "content-encoding: gzip" in error.value.message
        await client.close()


async def test_a_server_that_is_told_to_stop_while_it_opens_stops_and_nobody_can_connect_before() -> None:
    refused: list[int] = []

    class Opening(AppServer):
        async def _application(self, opening: AsyncExitStack) -> Application:
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))
            refused.append(1)
            self.stop()
            return nobody

    async def nobody(scope: Scope, receive: Receive, send: AsgiSend) -> None:
        raise AssertionError("nobody asks")

    async with Opening(Listening()) as server:
        await asyncio.wait_for(server.stopped(), 10)
    assert refused == [1]
