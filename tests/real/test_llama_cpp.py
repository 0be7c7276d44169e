"""llama.cpp in this process: started, stopped, refused, and silent on the terminal."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from forge import run_sync
from forge.backends import Local
from forge.backends.servers.launch import Launch
from forge.backends.servers.llama_cpp import LlamaCpp
from forge.backends.servers.process import free_port
from stages.halt import BackendFailed
from tests.flows import Desk


def local(path: Path) -> Launch:
    return Launch(model=str(path), program="local", context_tokens=512)


def test_it_serves_while_it_runs_and_not_afterwards(smol_path: Path) -> None:
    for _ in range(2):
        server = LlamaCpp(local(smol_path), smol_path)
        assert httpx.get(f"{server.url}/health").json() == {"status": "ok"}
        assert httpx.get(f"{server.url}/props").json()["default_generation_settings"]["n_ctx"] == 512
        server.stop()
        server.stop()
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health")


def test_nobody_is_answered_without_the_key_whatever_host_or_page_he_names(smol_path: Path) -> None:
    server = LlamaCpp(local(smol_path), smol_path, api_key="a-key")
    foreign = [{}, {"host": "rebound.example"}, {"origin": "https://page.example"}, {"authorization": "Bearer another"}]
    for headers in foreign:
        for path in ("/props", "/v1/models", "/slots", "/tokenize", "/v1/chat/completions"):
            assert httpx.get(server.url + path, headers=headers).status_code in {401, 404}
            assert httpx.post(server.url + path, headers=headers, json={"content": "a"}).status_code in {401, 404}
        allowed = httpx.get(f"{server.url}/health", headers=headers).headers["access-control-allow-origin"]
        assert allowed == "http://nobody.invalid"
    assert httpx.get(f"{server.url}/props", headers={"authorization": "Bearer a-key"}).status_code == 200
    server.stop()


def test_a_local_model_has_a_key_of_its_own(smol_path: Path) -> None:
    port = free_port()

    async def go(api_key: str = "") -> int:
        async with Local(str(smol_path), context_tokens=512, port=port, api_key=api_key).connect() as connection:
            assert connection.setup.context_tokens == 512
            async with httpx.AsyncClient(headers={"authorization": "Bearer mine"}, trust_env=False) as mine:
                return (await mine.get(f"http://127.0.0.1:{port}/props")).status_code

    assert asyncio.run(go()) == 401
    assert asyncio.run(go(api_key="mine")) == 200


def test_a_program_that_uses_it_ends_cleanly_and_llama_cpp_prints_nothing(smol_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from forge.backends import Local\n"
        "async def go():\n"
        "    async with Local(sys.argv[1], context_tokens=512).connect() as connection:\n"
        "        print(connection.setup.mode, connection.setup.context_tokens)\n"
        "asyncio.run(go())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(smol_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "constrained 512\n", "")


def test_a_run_on_a_damaged_model_ends_typed(tmp_path: Path) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 1000)
    halt = run_sync(Desk().workflow, "Go.", backend=Local(str(path))).failure().halt
    assert isinstance(halt, BackendFailed)
    assert re.search(r"could not load .*damaged.gguf.* It said: gguf_init", halt.fault.detail)
    assert "Traceback" not in halt.fault.detail


def test_without_the_extra_the_sentence_says_what_to_install(smol_path: Path, tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError")
    code = (
        "import sys; from pathlib import Path; from forge.backends.servers.launch import Launch; "
        "from forge.backends.servers.llama_cpp import LlamaCpp; "
        "LlamaCpp(Launch(model=sys.argv[1], program='local'), Path(sys.argv[1]))"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(smol_path)], capture_output=True, text=True, check=False, env=environment
    )
    assert "pip install '.[local]'" in done.stderr


def test_a_context_too_small_is_said_before_the_model_is_asked(smol_path: Path) -> None:
    async def context() -> int:
        async with Local(str(smol_path), context_tokens=512).connect() as connection:
            return connection.setup.context_tokens

    assert asyncio.run(context()) == 512
    result = run_sync(Desk().workflow, "Go.", backend=Local(str(smol_path), context_tokens=512))
    assert type(result.failure().halt).__name__ == "CannotFit"
