"""The HTTP interpreter against a real server process that misbehaves."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from forge import run_sync
from forge.backends import Server, named
from forge.connection import Connection
from forge.errors import ForgeError
from forge.interpreters.http import Http
from stages.effect import Fault, Replied, Request, Send, Undelivered, Usage
from stages.halt import BackendFailed
from stages.retry import Backoff
from tests.flows import Desk
from tests.misbehaving import misbehaving

QUICK = Backoff(first=0.001)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with misbehaving() as address:
        yield address


def post(url: str, timeout: float = 30.0) -> Replied | Undelivered:
    async def go() -> Replied | Undelivered:
        async with httpx.AsyncClient(timeout=timeout) as client:
            return await Http(client, url, QUICK)(Send(request=Request(), turn=1))

    return asyncio.run(go())


def fault(url: str, timeout: float = 30.0) -> tuple[Fault, int]:
    outcome = post(url, timeout)
    assert isinstance(outcome, Undelivered)
    return outcome.fault, outcome.attempts


def test_a_good_answer_is_read_with_its_usage(server: str) -> None:
    outcome = post(f"{server}/good")
    assert isinstance(outcome, Replied)
    assert (outcome.reply.text, outcome.reply.finish) == ("hello", "stop")
    assert outcome.reply.usage == Usage(prompt=12, completion=3, cached=5)


@pytest.mark.parametrize(("how", "requests"), [("busy", 3), ("loading", 2), ("cut", 2)])
def test_what_passes_is_tried_again(server: str, how: str, requests: int) -> None:
    assert isinstance(post(f"{server}/{how}"), Replied)
    assert httpx.get(f"{server}/{how}/count").text == str(requests)


def test_a_refusal_is_final_and_keeps_status_and_body(server: str) -> None:
    """B27: status and body used to be lost."""
    found, attempts = fault(f"{server}/wrong")
    assert (found.kind, found.status, attempts) == ("status", 400, 1)
    assert "exceed_context_size_error" in found.body


def test_a_server_that_asks_for_a_day_is_not_waited_for(server: str) -> None:
    found, attempts = fault(f"{server}/patient")
    assert (found.status, found.retry_after, attempts) == (429, 86400.0, 1)


def test_a_connection_that_keeps_breaking_is_given_up(server: str) -> None:
    found, attempts = fault(f"{server}/reset")
    assert (found.kind, attempts) == ("interrupted", 4)


@pytest.mark.parametrize(
    ("how", "kind", "says"),
    [("html", "malformed", "no chat completion"), ("empty", "malformed", "no choices"), ("huge", "too_large", "bytes")],
)
def test_an_answer_that_is_none_is_a_fault_not_a_reply(server: str, how: str, kind: str, says: str) -> None:
    found, attempts = fault(f"{server}/{how}")
    assert (found.kind, attempts) == (kind, 1)
    assert says in found.detail


def test_silence_is_a_timeout(server: str) -> None:
    assert fault(f"{server}/silent", timeout=0.2)[0].kind == "timeout"


def test_nobody_there_is_unreachable() -> None:
    found, attempts = fault("http://127.0.0.1:1")
    assert (found.kind, attempts) == ("unreachable", 4)


def connected(backend: Server) -> Connection:
    async def go() -> Connection:
        async with backend.connect() as connection:
            return connection

    return asyncio.run(go())


def test_llama_cpp_is_recognised_with_its_context(server: str) -> None:
    connection = connected(Server(f"{server}/llama"))
    assert (connection.mode, connection.context_tokens) == ("constrained", 2048)


def test_a_served_model_is_found_with_its_context(server: str) -> None:
    connection = connected(Server(f"{server}/vllm"))
    assert (connection.mode, connection.model, connection.context_tokens) == ("native", "served", 32768)


def test_what_is_given_is_not_asked(server: str) -> None:
    connection = connected(Server(f"{server}/vllm", model="mine", mode="prompted", context_tokens=1000))
    assert (connection.mode, connection.model, connection.context_tokens) == ("prompted", "mine", 1000)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "http://127.0.0.1:1/v1/"])
def test_a_run_on_a_server_that_is_not_there_ends_typed(address: str) -> None:
    halt = run_sync(Desk().workflow, "Go.", backend=address).failure().halt
    assert isinstance(halt, BackendFailed)
    assert halt.fault.kind == "unreachable"
    assert "Is the server running" in halt.fault.detail


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:abc", "http://127.0.0.1:99999", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ForgeError, match="is no server's address"):
        Server(url)


@pytest.mark.parametrize("name", ["ollama", "", "ftp://here", "127.0.0.1:8080"])
def test_an_unknown_backend_is_refused_with_what_is_possible(name: str) -> None:
    with pytest.raises(ForgeError, match=r"local .* or a server's address"):
        named(name)


def test_a_key_is_sent_and_shows_nowhere(server: str) -> None:
    backend = Server(f"{server}/wrong", api_key="sk-very-secret")
    result = run_sync(Desk().workflow, "Go.", backend=backend)
    assert "sk-very-secret" not in repr(result)
    assert "sk-very-secret" not in repr(backend)
