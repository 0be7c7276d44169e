"""A real llama-server under the ServerManager: options that it takes, its last words, a slot that is freed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from msgspec import Raw

from forge.backends import BudgetMode, Launch, ServerManager
from forge.backends.servers.process import Died
from stages.effect import Replied, Request, Send
from tests.conftest import LEFT_OUT
from tests.real.llama_server import Found, llama_server

Make = Callable[..., ServerManager]


@pytest.fixture(scope="session")
def found(smol_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    return llama_server(smol_path, tmp_path_factory.mktemp("program"))


@pytest.fixture
def program(found: Found, record_property: Callable[[str, object], None]) -> str:
    if found.left_out:
        record_property(LEFT_OUT, found.left_out)
    return found.path


@pytest.fixture
def make(program: str, smol_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("FORGE_STATE", str(tmp_path))

    def manager(budget: BudgetMode | None = None, api_key: str = "", **launching: object) -> ServerManager:
        given = {"model": str(smol_path), "executable": program, "threads": 1} | launching
        return ServerManager(Launch(**given), budget=budget, api_key=api_key)  # type: ignore[arg-type]  # of a test

    return manager


@pytest.mark.parametrize(
    "launching",
    [
        {"context_tokens": 512, "slots": 2},
        {"context_tokens": 512, "slots": 2, "kv_unified": True},
        {"context_tokens": 512, "cache_type_k": "q8_0", "cache_type_v": "q8_0", "flash_attention": "on"},
        {"context_tokens": 512, "gpu_layers": 0, "flags": ("--no-warmup",)},
        {"context_tokens": 512, "model": "smollm2-135m", "program": "local", "executable": ""},
        {"context_tokens": 512, "slots": 2, "kv_unified": True, "program": "local", "executable": ""},
        {"context_tokens": 512, "slots": 2, "cache_type_k": "q8_0", "program": "local", "executable": ""},
    ],
)
async def test_a_conversation_has_the_context_that_was_asked_for(make: Make, launching: dict[str, object]) -> None:
    async with make(**launching) as server, server.connect() as connection:
        assert server.budget.tokens == connection.setup.context_tokens == 512
        props = asked(server.url, "/props", server.api_key)
        assert props["default_generation_settings"]["n_ctx"] == 512
        assert props["total_slots"] == launching.get("slots", 1)
        assert isinstance(await connection.send(say(4)), Replied)


def asked(url: str, path: str, key: str = "") -> dict[str, dict[str, object]]:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    said = httpx.get(url + path, headers=headers, trust_env=False).raise_for_status()
    answer: dict[str, dict[str, object]] = said.json()
    return answer


def say(tokens: int) -> Send:
    head, message = Raw(b'{"max_tokens":%d}' % tokens), Raw(b'{"role":"user","content":"Go."}')
    return Send(request=Request(head=head, messages=(message,)), turn=1)


async def test_the_key_is_asked_for_and_known(make: Make) -> None:
    async with make(api_key="sk-very-secret-key", context_tokens=512) as server:
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            asked(server.url, "/props")
        async with server.connect() as connection:
            assert isinstance(await connection.send(say(4)), Replied)
        assert server.log is not None
        assert "sk-very-secret-key" not in server.log.read_text()


def test_its_own_last_words_are_understood(make: Make) -> None:
    with pytest.raises(Died, match="does not know an option"):
        asyncio.run(make(flags=("--frobnicate",)).start())


def test_a_damaged_model_is_named(make: Make, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + b"\0" * 100)
    for _ in range(5):
        with pytest.raises(Died) as caught:
            asyncio.run(make(model=str(damaged)).start())
        assert caught.value.exit_code > 0, "mostly 1; another was seen once, on a busy machine"
        if "(nothing)" not in str(caught.value):  # it may end before its own log was written, on a busy machine
            break
    assert "failed to load model" in str(caught.value)
