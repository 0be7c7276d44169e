"""What a server may cost: nothing that it says of itself takes more than a bound of memory and time."""

import asyncio
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from returns.result import Success

import forge
from forge import Workflow, tool
from forge.backends import Server
from forge.backends.doctor.examination import examine
from forge.backends.doctor.facts import MODELS
from forge.backends.http_client import new_client
from forge.backends.questions import MOST, Tokenizer, ask
from forge.errors import BackendError, ForgeError
from tests.costly import costly
from tests.flows import connected


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with costly() as url:
        yield url


@pytest.fixture
def memory() -> Iterator[None]:
    """The test takes no more memory at any time than a few answers of the largest size."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MOST


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("how", "where"),
    [
        ("gzip", "props"),
        ("endless", "props"),
        ("br", "models"),
        ("endless", "models"),
        ("zstd", "tokenize"),
        ("endless", "apply-template"),
    ],
)
def test_what_a_server_says_of_itself_is_read_to_a_bound_and_never_unpacked(server: str, how: str, where: str) -> None:
    async def go() -> int | None:
        root = f"{server}/{how}/{where}"
        async with new_client(root) as http:
            counted = await Tokenizer(http, root).count(b"{}")
            answer = await ask(http, f"{root}/{where}", loading=0)
        assert answer.unread
        assert answer.read(dict) is None
        async with Server(f"{root}/v1", profile="llama-server").connect() as found:
            assert found.setup.context_tokens == (4096 if where == "props" else 8192)
            assert (found.setup.markers, found.setup.alternating) == (None, False)
        return counted

    assert asyncio.run(go()) == (None if where in {"tokenize", "apply-template"} else 3)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("how", ["gzip", "endless"])
def test_the_doctor_reads_to_a_bound_too(server: str, how: str) -> None:
    async def go() -> None:
        async with new_client(server) as http:
            visit = await examine(http, f"{server}/{how}/models/v1", (MODELS,))
        assert visit.findings[0].verdict == "no"

    asyncio.run(go())


async def test_a_server_that_drips_is_not_listened_to_for_ever(server: str) -> None:
    with pytest.raises(BackendError, match="did not answer within"):
        async with new_client(server) as http:
            await ask(http, f"{server}/drip/props", seconds=0.3, loading=0)


async def test_a_question_can_be_cancelled(server: str) -> None:
    async with new_client(server) as http:
        asking = asyncio.create_task(Tokenizer(http, f"{server}/drip").count_text("hello"))
        await asyncio.sleep(0.1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


def end() -> str:
    """End."""
    return "done"


def test_fifty_runs_at_once_against_a_healthy_server_all_succeed(server: str) -> None:
    workflow = Workflow("many", tools=[tool(effect="terminal")(end)], terminal_tool="end")

    async def go() -> list[object]:
        backends = [Server(f"{server}/well") for _ in range(50)]
        return list(await asyncio.gather(*(forge.run(workflow, "Go.", backend=backend) for backend in backends)))

    assert [result for result in asyncio.run(go()) if not isinstance(result, Success)] == []


def test_certificates_are_for_https_alone(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were loaded for each connection, 30 ms each, whatever the address began with."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    assert connected(Server(f"{server}/well", profile="llama-server")).setup.context_tokens == 8192
    with pytest.raises(ForgeError, match=r"certificates of SSL_CERT_FILE=.*missing\.pem cannot be loaded"):
        connected(Server("https://127.0.0.1:1/v1", profile="llama-server"))
