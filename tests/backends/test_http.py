"""The HTTP interpreter against a real server process that misbehaves."""

import asyncio
import errno
from collections.abc import Iterator

import httpx
import pytest
import trustme

from forge import run_sync
from forge.backends import Local, Server, named
from forge.errors import ForgeError
from forge.interpreters.http import HttpSender, fault_of
from stages.effect import Fault, Replied, Request, Send, Undelivered, Usage
from stages.halt import BackendFailed
from stages.retry import Backoff
from tests.flows import Desk, connected
from tests.forward_proxy import served, trusting
from tests.misbehaving import GOOD, misbehaving
from tests.misbehaving import answer as misbehaving_answer

QUICK = Backoff(first=0.001)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with misbehaving() as address:
        yield address


def post(url: str, timeout: float = 30.0, total: float | None = None) -> Replied | Undelivered:
    async def go() -> Replied | Undelivered:
        async with httpx.AsyncClient(timeout=timeout, verify=False) as client:  # noqa: S501 - nothing to trust here
            return await HttpSender(client, url, QUICK, total=total)(Send(request=Request(), turn=1))

    return asyncio.run(go())


def fault(url: str, timeout: float = 30.0, total: float | None = None) -> tuple[Fault, int]:
    outcome = post(url, timeout, total)
    assert isinstance(outcome, Undelivered)
    return outcome.fault, outcome.attempts


def test_a_good_answer_is_read_with_its_usage(server: str) -> None:
    outcome = post(f"{server}/good")
    assert isinstance(outcome, Replied)
    assert (outcome.reply.text, outcome.reply.finish) == ("hello", "stop")
    assert outcome.reply.usage == Usage(prompt=12, completion=3, cached=5)


WITH_PATIENCE = [
    ("busy", 3),
    ("loading", 2),
    ("cut", 2),
    ("date", 2),
    ("milliseconds", 2),
    ("headless", 3),
    ("truncated", 2),
    ("hopeful", 2),
]
TRANSIENT = [(f"flaky/{status}", 3) for status in (408, 429, 503, 529)]


@pytest.mark.parametrize(("how", "requests"), WITH_PATIENCE + TRANSIENT)
def test_what_passes_is_tried_again(server: str, how: str, requests: int) -> None:
    assert isinstance(post(f"{server}/{how}"), Replied)
    assert httpx.get(f"{server}/{how}/count").text == str(requests)


def test_a_refusal_is_final_and_keeps_status_and_body(server: str) -> None:
    """Status and body used to be lost."""
    found, attempts = fault(f"{server}/wrong")
    assert (found.kind, found.status, attempts) == ("status", 400, 1)
    assert "exceed_context_size_error" in found.body


def test_a_server_that_asks_for_a_day_is_not_waited_for(server: str) -> None:
    found, attempts = fault(f"{server}/patient")
    assert (found.status, found.retry_after, attempts) == (429, 86400.0, 1)
    assert "answered 429 (it asks to wait 86400 seconds): " in found.detail


def test_a_connection_that_keeps_breaking_is_given_up(server: str) -> None:
    found, attempts = fault(f"{server}/reset")
    assert (found.kind, attempts) == ("interrupted", 4)


FAULTS = [
    ("html", "malformed", 2, "not a chat completion"),
    ("nothing", "malformed", 2, "not a chat completion"),
    ("deep", "malformed", 2, "not a chat completion"),
    ("empty", "malformed", 2, "no choices"),
    ("bomb", "malformed", 2, "no compression was requested"),
    ("reported", "reported", 2, "no memory left"),
    ("stuck", "status", 2, "parse tool call arguments"),
    ("hopeless", "status", 1, "quota"),
    ("moved", "status", 1, "it redirects to https://elsewhere.example/v1"),
    ("huge", "too_large", 1, "bytes"),
    ("headers", "interrupted", 4, "broke"),
    ("line", "interrupted", 4, "broke"),
    ("garbage", "interrupted", 4, "broke"),
]


@pytest.mark.parametrize(("how", "kind", "attempts", "says"), FAULTS)
def test_an_answer_that_is_none_is_a_fault_not_a_reply(
    server: str, how: str, kind: str, attempts: int, says: str
) -> None:
    found, tried = fault(f"{server}/{how}")
    assert (found.kind, tried) == (kind, attempts)
    assert says in found.detail
    assert len(found.detail) < 1000
    assert len(found.body) <= 2000


def test_a_page_is_said_to_be_one(server: str) -> None:
    assert "'text/html': is there a proxy or another server at that address?" in fault(f"{server}/html")[0].detail


def test_a_refusal_in_a_page_is_told_without_the_page(server: str) -> None:
    found, _ = fault(f"{server}/page")
    assert "answered 501: a web page. Is this the address of a model's server?" in found.detail
    assert "<" not in found.detail


def test_a_refused_connection_says_so_although_the_host_has_several_addresses() -> None:
    error, tried = httpx.ConnectError("All connection attempts failed"), OSError("All connection attempts failed")
    tried.__cause__ = ExceptionGroup("", [ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('::1', 9)")])
    error.__cause__ = tried
    assert "x: Connection refused. Is the server" in fault_of(error, "x", None).detail


def test_silence_is_a_timeout(server: str) -> None:
    found, _ = fault(f"{server}/silent", timeout=0.2)
    assert found.kind == "timeout"
    assert "sent nothing for 0.2 seconds; if it is only slow, allow more" in found.detail


def test_a_backend_is_told_how_long_a_request_may_take_in_all(server: str) -> None:
    backend = Server(f"{server}/drip", model="m", profile="openai-compatible", total_timeout=0.2)
    halt = run_sync(Desk().workflow, "Go.", backend=backend).failure().halt
    assert isinstance(halt, BackendFailed)
    assert "longer than 0.2 seconds in total" in halt.fault.detail


def test_a_server_that_speaks_no_tls_is_said_to_speak_none() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)  # no line: the bytes of a TLS greeting may hold no end of one
        writer.write(misbehaving_answer("400 Bad Request", b"{}"))
        await writer.drain()
        writer.close()

    async def go() -> Replied | Undelivered:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, httpx.AsyncClient() as client:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            return await HttpSender(client, url, QUICK)(Send(request=Request(), turn=1))

    outcome = asyncio.run(go())
    assert isinstance(outcome, Undelivered)
    assert (outcome.fault.kind, outcome.attempts) == ("tls", 1)
    assert "does the server speak https at all?" in outcome.fault.detail


def test_a_certificate_is_trusted_only_as_the_client_says() -> None:
    authority = trustme.CA()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(misbehaving_answer("200 OK", GOOD))
        await writer.drain()
        writer.close()

    async def go() -> tuple[Replied | Undelivered, Replied | Undelivered]:
        async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=served(authority, "127.0.0.1")) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with httpx.AsyncClient() as strange, httpx.AsyncClient(verify=trusting(authority)) as known:
                send = Send(request=Request(), turn=1)
                return await HttpSender(strange, url, QUICK)(send), await HttpSender(known, url, QUICK)(send)

    strange, known = asyncio.run(go())
    assert isinstance(strange, Undelivered)
    assert (strange.fault.kind, strange.attempts) == ("tls", 1)
    assert "not trusted here" in strange.fault.detail
    assert isinstance(known, Replied)


def test_a_name_that_nobody_has_is_said_to_be_unknown() -> None:
    found, _ = fault("http://nowhere.invalid")
    assert found.kind == "unreachable"
    assert "the host name cannot be resolved" in found.detail


def test_secrets_in_an_address_are_not_shown(server: str) -> None:
    secret = server.replace("http://", "http://user:hush@")
    for how in ("wrong", "html", "reset"):
        assert "hush" not in repr(post(f"{secret}/{how}"))


def test_nobody_there_is_unreachable() -> None:
    found, attempts = fault("http://127.0.0.1:1")
    assert (found.kind, attempts) == ("unreachable", 4)


def test_what_is_given_is_not_asked(server: str) -> None:
    connection = connected(Server(f"{server}/vllm", model="mine", mode="prompted", context_tokens=1000))
    assert (connection.setup.mode, connection.setup.model, connection.setup.context_tokens) == (
        "prompted",
        "mine",
        1000,
    )


def test_a_refusal_by_a_server_that_lists_no_models_says_how_to_name_one(server: str) -> None:
    """The request has an empty name then, which some servers accept."""

    def refusal(model: str) -> str:
        backend = Server(f"{server}/wrong", model=model, mode="prompted", context_tokens=4096)
        halt = run_sync(Desk().workflow, "Go.", backend=backend).failure().halt
        assert isinstance(halt, BackendFailed)
        return halt.fault.detail

    assert f"The server at {server}/wrong lists no models, so none was named; give model=…, on the" in refusal("")
    assert "lists no models" not in refusal("mine")


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://127.0.0.1:1/v1/"])
def test_a_run_on_a_server_that_is_not_there_ends_typed(address: str) -> None:
    halt = run_sync(Desk().workflow, "Go.", backend=address).failure().halt
    assert isinstance(halt, BackendFailed)
    assert halt.fault.kind == "unreachable"
    assert "Is the server running" in halt.fault.detail


def test_what_is_no_backend_and_no_mode_is_refused() -> None:
    with pytest.raises(ForgeError, match="backend is None; it must be one of "):
        run_sync(Desk().workflow, "Go.", backend=None)  # type: ignore[arg-type]  # wrong on purpose
    for make in (Server, Local):
        with pytest.raises(ForgeError, match="mode is 'fast'; it must be one of auto, native, prompted"):
            make("http://127.0.0.1:1" if make is Server else "", mode="fast")  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:abc", "http://127.0.0.1:99999", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ForgeError, match="is not a server's address"):
        Server(url)


@pytest.mark.parametrize("name", ["ollama", "", "ftp://here"])
def test_an_unknown_backend_is_refused_with_what_is_possible(name: str) -> None:
    with pytest.raises(ForgeError, match=r"local .* llama-server|on the command line ollama:MODEL"):
        named(name)
