"""The proxy's HTTP client against servers that say what servers may say, and what they may not."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing

import pytest
import trustme

from forge.connection import Endpoint
from forge.errors import ForgeError
from forge.proxy.endpoint_client import HEAD_LIMIT, HELD, EndpointClient
from forge.proxy.upstream import TransportError
from tests.forward_proxy import ForwardProxy, served, trusting

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Site:
    """A server that says of each connection what the test has it say. `requests` are those that it read."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()

    async def read(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        return self.requests[-1]


@asynccontextmanager
async def site(
    answers: bytes | Talk, *, tls: ssl.SSLContext | None = None, silence: float = 30.0, total: float | None = None
) -> AsyncIterator[tuple[EndpointClient, Site, str]]:
    """A client and a server that gives these bytes to each request, or does as it is told."""

    async def usual(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(answers, bytes)
        while True:
            await there.read(reader)
            writer.write(answers)
            await writer.drain()
            if b"\r\n\r\nuntil" in answers:
                return

    there = Site(usual if isinstance(answers, bytes) else answers)
    server = await asyncio.start_server(there.serve, "127.0.0.1", 0, ssl=tls)
    root = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    endpoint = Endpoint(base=root + "/v1", root=root, headers={"x-of": "ours"}, timeout=silence, total=total)
    with closing(EndpointClient(endpoint)) as client:
        try:
            yield client, there, root + "/v1/chat"
        finally:
            server.close()


async def said(client: EndpointClient, url: str, key: str = "k") -> tuple[int, bytes | None]:
    async with await client.ask("POST", url, key, b"hello") as answer:
        return answer.status, await answer.read(1 << 20)


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"

ANSWERS = {
    "a length": (OK, 200, b"hi"),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\nt: 1\r\n\r\n",
        200,
        b"hi",
    ),
    "the end of the connection": (b"HTTP/1.0 200 OK\r\n\r\nuntil it closes", 200, b"until it closes"),
    "nothing": (b"HTTP/1.1 204 No\r\n\r\n", 204, b""),
    "early hints": (b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 100 Go\r\n\r\n" + OK, 200, b"hi"),
    "a refusal": (b"HTTP/1.1 429 Slow\r\ncontent-length: 1\r\n\r\nx", 429, b"x"),
    "more than may be read": (b"HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n" + b"x" * 1048577, 200, None),
}


@pytest.mark.parametrize("what", ANSWERS)
async def test_an_answer_is_read_however_its_end_is_told(what: str) -> None:
    answer, status, body = ANSWERS[what]
    async with site(answer) as (client, there, url):
        assert await said(client, url) == (status, body)
        assert await said(client, url) == (status, body)
        head, _, sent = there.requests[0].partition(b"\r\n\r\n")
        assert sent == b"hello"
        lines = head.split(b"\r\n")
        assert lines[0] == b"POST /v1/chat HTTP/1.1"
        assert {b"x-of: ours", b"authorization: Bearer k", b"accept-encoding: identity"} <= set(lines)


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        (OK, 1),
        (ANSWERS["chunks"][0], 1),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi", 2),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", 2),
        (OK + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged", 2),  # an answer to what was not asked
    ],
)
async def test_a_connection_is_kept_where_both_sides_may(answer: bytes, connections: int) -> None:
    async with site(answer) as (client, there, url):
        assert [await said(client, url) for _ in range(2)] == [(200, b"hi")] * 2
        assert there.connections == connections


async def test_what_comes_on_an_idle_connection_answers_nothing() -> None:
    spoken = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await there.read(reader)
        writer.write(OK)
        if there.connections == 1:
            await spoken.wait()
            writer.write(OK.replace(b"hi", b"no"))
        await reader.readexactly(1)

    async with site(talk) as (client, there, url):
        assert await said(client, url) == (200, b"hi")
        spoken.set()
        await asyncio.sleep(0.05)  # either order is right: what is looked at is that no answer is mixed up
        assert await said(client, url) == (200, b"hi")
        assert there.connections == 2


async def test_what_has_come_unasked_answers_nothing_although_the_loop_has_not_read_it_yet() -> None:
    writers: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while True:
            await there.read(reader)
            writer.write(OK)

    async with site(talk) as (client, there, url):
        for number in range(1, 4):
            assert await said(client, url) == (200, b"hi")
            assert there.connections == number
            writers[-1].write(OK.replace(b"hi", b"no"))  # sent at once, and the next request without a turn between


async def test_an_answer_too_many_is_never_another_callers_however_late_it_comes() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers a second request with what was meant for the first."""
        own = b"hi" if there.connections % 2 else b"ho"
        for _ in range(2):
            await there.read(reader)
            writer.write(OK.replace(b"hi", own))
        await reader.readexactly(1)

    async with site(talk) as (client, there, url):
        assert [await said(client, url, "ann") for _ in range(2)] == [(200, b"hi")] * 2
        assert [await said(client, url, "bob") for _ in range(2)] == [(200, b"ho")] * 2
        assert there.connections == 2
        await there.closed.wait()  # that of the first caller: there are no more at a time than before


@pytest.mark.parametrize("garbage", [b'"}]}', b"\0\xff", b"HTTP/1.1 200 OK\r\ncontent-le: \0\r\n"])
async def test_a_request_that_meets_the_rest_of_an_earlier_answer_is_asked_on_a_new_connection(garbage: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The second request of each connection is read, and the rest of the first answer comes before its own."""
        await there.read(reader)
        writer.write(OK)
        await there.read(reader)
        writer.write(garbage + OK)

    async with site(talk) as (client, there, url):
        for _ in range(3):
            assert await said(client, url) == (200, b"hi")
        assert (there.connections, len(there.requests)) == (3, 5)


BROKEN = {
    **{f"the status {status}": b"HTTP/1.1 %03d E\r\ncontent-length: 2\r\n\r\n{}" % status for status in (99, 600)},
    "no HTTP": b"\x16\x03\x01 hello there\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nx: " + b"y" * (HEAD_LIMIT + 1),
    "trailers without end": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nh\r\n0\r\nt: "
    + b"y" * 9 * HEAD_LIMIT,
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!",
    "a length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nbytes",
}


@pytest.mark.parametrize("what", BROKEN)
async def test_what_is_no_answer_is_refused(what: str) -> None:
    async with site(BROKEN[what]) as (client, _, url):
        with pytest.raises(TransportError):
            await said(client, url)


async def test_an_answer_that_breaks_off_is_told_from_none_and_never_asked_for_again() -> None:
    begins = OK[:-1]

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await there.read(reader)
        writer.write(begins)

    async with site(talk) as (client, there, url):
        with pytest.raises(TransportError, match="closed in the middle of an answer"):
            await said(client, url)
        begins = b""
        with pytest.raises(TransportError, match="closed without an answer"):
            await said(client, url)
        assert len(there.requests) == 2


async def test_a_kept_connection_that_the_server_closes_is_replaced_once() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request of each connection, and reads the next without a word."""
        await there.read(reader)
        writer.write(OK)
        await there.read(reader)

    async with site(talk) as (client, there, url):
        for _ in range(3):
            assert await said(client, url) == (200, b"hi")
        assert there.connections == 3


@pytest.mark.parametrize(
    ("silence", "total", "says"),
    [
        (0.05, None, "sent nothing for 0.05 seconds; if it is only slow, allow more .timeout=…, --timeout."),
        (30.0, 0.05, "did not complete its answer in time"),
    ],
)
async def test_silence_and_slowness_have_an_end(silence: float, total: float | None, says: str) -> None:
    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await there.read(reader)
        await reader.readexactly(1)

    async with site(talk, silence=silence, total=total) as (client, there, url):
        with pytest.raises(TransportError, match=says):
            await said(client, url)
        await there.closed.wait()


async def test_who_asks_no_more_closes_the_connection() -> None:
    begun = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await there.read(reader)
        begun.set()
        await reader.readexactly(1)

    async with site(talk) as (client, there, url):
        asking = asyncio.create_task(said(client, url))
        await begun.wait()
        asking.cancel()
        await there.closed.wait()


async def test_no_more_is_read_than_is_taken() -> None:
    """A server that has more to say than the client takes has to wait; then all of it comes."""
    size, sent = 64 * HELD, 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await there.read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(64):
            writer.write(b"x" * HELD)
            await writer.drain()
            sent += HELD

    async with site(talk, silence=0.2) as (client, there, url):
        async with await client.ask("POST", url, "", b"hello") as answer:
            await asyncio.sleep(0.5)  # longer than the silence: it is the client that is slow
            assert sent < size
            got = 0
            while chunk := await answer.chunk():
                got += len(chunk)
        assert got == size


@pytest.mark.parametrize("size", [2 * HELD, 64 * HELD])
async def test_an_answer_that_is_not_read_to_its_end_is_in_nobodys_way(size: int) -> None:
    async with site(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size) as (client, _, url):
        for _ in range(3):
            async with await client.ask("POST", url, "", b"hello") as answer:
                assert await answer.chunk()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.mark.parametrize(("proxy_tls", "server_tls"), [(False, False), (False, True), (True, True)])
async def test_a_forward_proxy_is_gone_through(authority: trustme.CA, *, proxy_tls: bool, server_tls: bool) -> None:
    tls = served(authority, "models.example") if server_tls else None
    async with (
        site(OK, tls=tls) as (_, there, url),
        ForwardProxy(
            int(url.split(":")[2].split("/")[0]), served(authority, "127.0.0.1") if proxy_tls else None
        ) as way,
    ):
        root = f"{'https' if server_tls else 'http'}://models.example"
        through = way.url.replace("://", "://ann:p%40ss@")
        endpoint = Endpoint(base=root, root=root, headers={}, proxy=through, tls=trusting(authority))
        with closing(EndpointClient(endpoint)) as client:
            assert await said(client, root + "/v1/chat") == (200, b"hi")
            assert await said(client, root + "/v1/chat") == (200, b"hi")
        tunnel = "CONNECT models.example:443 HTTP/1.1"
        assert way.asked == [tunnel if server_tls else "POST http://models.example/v1/chat HTTP/1.1"]
        assert way.credentials == ["Basic YW5uOnBAc3M="]
        assert b"\r\nhost: models.example\r\n" in there.requests[0]
        assert (b"proxy-authorization" in there.requests[0]) != server_tls  # a server behind a tunnel sees none


async def test_a_certificate_that_nobody_trusts_is_refused_through_a_proxy_too(authority: trustme.CA) -> None:
    async with (
        site(OK, tls=served(authority, "other.example")) as (_, there, url),
        ForwardProxy(int(url.split(":")[2].split("/")[0])) as way,
    ):
        root = "https://models.example"
        endpoint = Endpoint(base=root, root=root, headers={}, proxy=way.url, tls=trusting(authority))
        with (
            closing(EndpointClient(endpoint)) as client,
            pytest.raises(TransportError, match="its certificate is not trusted here"),
        ):
            await said(client, root)
        assert not there.requests


async def test_a_proxy_that_refuses_is_told_of_and_one_of_another_kind_is_refused() -> None:
    async with ForwardProxy(1, refuses=407) as way:
        root = "https://models.example"
        with (
            closing(EndpointClient(Endpoint(base=root, root=root, headers={}, proxy=way.url))) as client,
            pytest.raises(TransportError, match="the forward proxy answered 407"),
        ):
            await said(client, root)
    with pytest.raises(ForgeError, match="socks5 proxy"):
        EndpointClient(Endpoint(base="http://a", root="http://a", headers={}, proxy="socks5://127.0.0.1:1"))


async def test_bytes_go_through_unchanged() -> None:
    """Nothing is followed, unpacked, remembered or written otherwise, either way."""
    body = bytes(range(256)) * 5
    packed = gzip.compress(b"not unpacked", mtime=0)
    answer = (
        b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\nset-cookie: a=b\r\ncontent-encoding: gzip\r\n"
        b"x-Odd: \xe9\r\ncontent-length: %d\r\n\r\n%b" % (len(packed), packed)
    )
    async with site(answer) as (client, there, url):
        for _ in range(2):
            opened = await client.ask("POST", url + "/a%2Fb/%7Ec?q=%20x+y;z", "k", body, trace=(("x-Trace", "1"),))
            async with opened as given:
                assert (given.status, given.headers["location"]) == (302, "/elsewhere")
                assert (given.headers["x-odd"], await given.read(1 << 20)) == ("\xe9", packed)
        first, second = there.requests
        assert first == second  # no cookie
        head, _, sent = first.partition(b"\r\n\r\n")
        assert head.startswith(b"POST /v1/chat/a%2Fb/%7Ec?q=%20x+y;z HTTP/1.1\r\n")
        assert sent == body
