"""ServerManager against a program that misbehaves: how it starts, what is said when it does not, that it ends."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from forge import run_sync
from forge.backends import Server, named, setup_backend
from forge.backends.budget import BudgetMode, ResolvedBudget
from forge.backends.servers.launch import Launch
from forge.backends.servers.process import Loading, free_port, log_folder
from forge.backends.servers.server_manager import AttachedOllama, ServerManager
from forge.errors import BackendError, DefinitionError, ForgeError
from forge.runtime.watching import Watching
from stages.halt import BackendFailed
from stages.retry import Tries
from stages.wire.wires import wire
from tests.commands import forge
from tests.flows import Desk
from tests.serving import JsonHandler, threaded

FAKE = Path(__file__).parents[1] / "fake_server.py"
KEY = "sk-very-secret-key"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Logs go into the test's own folder."""
    monkeypatch.setenv("FORGE_STATE", str(tmp_path / "state"))
    return tmp_path


def installed(folder: Path, how: str = "good") -> str:
    """The fake program, executable; the environment says how it behaves, if it says anything."""
    program = folder / "llama-server"
    before = f"import os, runpy\nos.environ.setdefault('FAKE', {how!r})\n"
    program.write_text(f"#!{sys.executable}\n{before}runpy.run_path({str(FAKE)!r}, run_name='__main__')\n")
    program.chmod(0o755)
    return str(program)


def gguf(folder: Path, name: str = "model.gguf") -> str:
    path = folder / name
    path.write_bytes(b"GGUF")
    return str(path)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., ServerManager]:
    def manager(how: str = "good", file: object = None, **options: object) -> ServerManager:
        launching = {name: options.pop(name) for name in list(options) if name in Launch.__struct_fields__}
        launching = {"model": gguf(tmp_path), "executable": installed(tmp_path)} | launching
        environment = {"FAKE": how, "FAKE_FILE": str(file), "HF_TOKEN": "hf_also_secret"}
        return ServerManager(Launch(**launching), environment=environment, **options)  # type: ignore[arg-type]  # of a test

    return manager


Make = Callable[..., ServerManager]


def alive(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.TransportError:  # refused, or reset while it ends
        return False


def test_it_is_ready_inside_and_gone_outside(make: Make) -> None:
    async def go() -> str:
        async with make(context_tokens=2048, slots=2) as server:
            assert alive(server.url)
            assert server.budget == ResolvedBudget(tokens=2048, source="as given")
            async with server.connect() as connection, server.connect():
                assert (connection.setup.model, connection.setup.context_tokens) == ("model", 2048)
            assert alive(server.url), "a connection that ends takes the server along"
            return server.url

    assert not alive(asyncio.run(go()))


def test_it_can_be_started_by_hand_again_and_again_in_any_loop(make: Make) -> None:
    server = make()
    asyncio.run(server.start())
    first = server.url
    asyncio.run(server.start())
    assert server.url == first, "a server that runs is started again"
    asyncio.run(server.stop())
    asyncio.run(server.stop())
    assert not alive(first)
    asyncio.run(server.start())
    assert alive(server.url)
    asyncio.run(server.stop())


async def test_a_server_that_was_started_by_hand_outlives_the_runs_that_use_it(make: Make) -> None:
    server = make()
    await server.start()
    url = server.url
    for _ in range(2):
        async with server.connect():
            assert server.url == url
        assert alive(url), "the end of a run ends a server that is somebody else's to stop"
    await server.stop()
    assert not alive(url)


def test_a_stop_inside_is_a_stop_and_the_next_use_ends_as_well(make: Make) -> None:
    server = make()

    async def go() -> str:
        async with server:
            await server.stop()
        async with server:
            await server.start()
            return server.url

    assert not alive(asyncio.run(go()))


async def test_a_stop_ends_what_is_just_being_started(make: Make) -> None:
    server = make()
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(0)  # it has begun, and is far from ready
    await server.stop()
    await starting
    with pytest.raises(ForgeError, match="not running"):
        _ = server.url


async def test_who_comes_while_it_is_being_stopped_has_a_running_one(make: Make) -> None:
    async def use(server: ServerManager) -> bool:
        async with server:
            return alive(server.url)

    server = make(port=free_port())
    async with server:
        leaving = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        assert await use(server)
        await leaving


async def test_a_server_that_died_meanwhile_is_started_anew(make: Make) -> None:
    async with make("deaf", grace=0.1) as server:
        before = server.url
        with socket.create_connection(("127.0.0.1", urlsplit(before).port or 0)) as connection:
            supervisor = server._now().process._supervisor  # type: ignore[union-attr]  # what no user can reach
            supervisor.kill()
            assert closed(connection), "the server outlives its supervisor"
            supervisor.wait()
        await server.start()
        assert server.url != before
        assert alive(server.url)


def context(server: ServerManager) -> object:
    """What the server was started with."""
    key = {"authorization": f"Bearer {server.api_key}"}
    return httpx.get(f"{server.url}/props", headers=key, trust_env=False).json()["default_generation_settings"]["n_ctx"]


def closed(connection: socket.socket) -> bool:
    """Wait until the other end is gone."""
    connection.settimeout(30)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def failure(manager: ServerManager) -> str:
    async def go() -> None:
        async with manager:
            pass

    with pytest.raises(BackendError) as caught:
        asyncio.run(go())
    return str(caught.value)


def test_one_that_dies_is_quoted_with_its_exit_code_and_a_hint(make: Make, tmp_path: Path) -> None:
    said = failure(make("dies"))
    assert "llama-server ended with exit code 3 before it was ready. Does the model file exist?" in said
    assert "  | E load: failed to open GGUF file" in said
    (log,) = log_folder().iterdir()
    assert f"Its log: {log}" in said
    assert log.stat().st_mode & 0o077 == 0, "others can read the log"
    assert log.is_relative_to(tmp_path)


def test_a_log_that_is_removed_meanwhile_keeps_no_server_from_starting(make: Make) -> None:
    log_folder().mkdir(parents=True)
    (log_folder() / "gone.log").symlink_to("nowhere.log")  # listed, and not there when it is looked at
    assert "exit code 3" in failure(make("dies"))


@pytest.mark.parametrize("streamed", [False, True])
def test_one_that_dies_at_a_request_is_told_as_one_that_died_not_as_one_that_was_never_there(
    make: Make, *, streamed: bool
) -> None:
    def retry(_: Tries) -> float | None:
        return 0.01 if running(manager) else None

    manager = make("later", retry=retry)
    watching: Watching = {"on_chunk": lambda _: None} if streamed else {}
    halt = run_sync(Desk().workflow, "Go.", backend=manager, **watching).failure().halt
    assert isinstance(halt, BackendFailed)
    assert "llama-server ended with exit code 132 (SIGILL) while it was in use." in halt.fault.detail
    (log,) = log_folder().iterdir()
    assert f"Its log: {log}" in halt.fault.detail


def running(manager: ServerManager) -> bool:
    """Whether its process still runs: it is looked at as the next start would."""
    process = manager._now().process
    assert process is not None
    return process.code is None


def test_a_server_that_prints_its_secrets_is_quoted_without_them(make: Make) -> None:
    manager = make("leaks", api_key=KEY)
    said = failure(manager)
    assert "my key is ***, my token ***" in said
    assert KEY not in said + repr(manager)


def test_a_server_gets_what_it_needs_and_no_key_of_anyone_else(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ("PATH", "CUDA_VISIBLE_DEVICES", "GGML_CUDA_ENABLE_UNIFIED_MEMORY", "LC_ALL")
    secret = ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "LLAMA_ARG_HF_TOKEN", "VLLM_API_KEY", "DATABASE_URL", "NETRC")
    for name in (*kept[1:], *secret):
        monkeypatch.setenv(name, "C")
    said = failure(make("asks", " ".join((*secret, *kept))))
    assert said.endswith(f"given: {' '.join(kept)}")


def test_one_that_is_never_ready_is_given_up_and_stopped(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as home:
        said = failure(make("never", home.getsockname()[1], load_timeout=2.0))
        with home.accept()[0] as connection:
            assert closed(connection)
    assert "not ready after 2 seconds; it was stopped" in said
    assert "load_timeout" in said
    assert "  | loading " in said


async def test_a_long_load_is_told_of(make: Make, tmp_path: Path) -> None:
    told: list[Loading] = []
    ready = tmp_path / "ready"

    def progress(loading: Loading) -> None:
        told.append(loading)
        ready.touch()

    async with make("loading", ready, progress=progress) as server:
        assert alive(server.url)
    assert told[0].said.startswith("loading ")
    assert told[0].seconds > 0


def test_one_that_does_not_want_to_end_is_killed_with_its_workers(make: Make, tmp_path: Path) -> None:
    port = tmp_path / "port"

    async def go() -> tuple[socket.socket, str]:
        async with make("stubborn", port, grace=0.2) as server:
            return socket.create_connection(("127.0.0.1", int(port.read_text()))), server.url

    worker, url = asyncio.run(go())
    assert not alive(url)
    with worker:
        assert closed(worker), "a worker was left behind"


SCRIPT = """
import asyncio, os, signal, sys
from forge.backends.servers.launch import Launch
from forge.backends.servers.server_manager import ServerManager

async def go():
    async with ServerManager(Launch(model=sys.argv[1], executable=sys.argv[2])) as server:
        print(server.url, flush=True)
        sys.stdin.readline()
        {end}
        await asyncio.sleep(60)

asyncio.run(go())
"""
ENDS = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "interrupted": "os.kill(os.getpid(), signal.SIGINT)",
    "exception": "raise ValueError('broken')",
}
"""Without a word, as by SIGTERM and os._exit; by cancelling the loop; by leaving the block, as with sys.exit."""


@pytest.mark.parametrize("end", ENDS)
def test_no_server_outlives_its_forge(end: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT.format(end=ENDS[end]), gguf(tmp_path), installed(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as forge:
        assert forge.stdin is not None
        assert forge.stdout is not None
        url = urlsplit(forge.stdout.readline().strip())
        with socket.create_connection(("127.0.0.1", url.port or 0)) as connection:
            forge.stdin.write("go\n")
            forge.stdin.flush()
            assert closed(connection)
    assert not alive(url.geturl())


def test_a_start_that_is_cancelled_leaves_nothing(make: Make) -> None:
    async def go() -> bytes:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as home:
            home.setblocking(False)
            starting = asyncio.create_task(make("never", home.getsockname()[1]).start())
            connection, _ = await loop.sock_accept(home)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
            with connection:
                return await loop.sock_recv(connection, 1)

    assert asyncio.run(go()) == b""


async def test_a_port_in_use_is_refused(make: Make) -> None:
    async with make() as first:
        port = urlsplit(first.url).port
        with pytest.raises(BackendError, match=rf"port {port} is in use.*pass its address"):
            await make(port=port).start()
        assert alive(first.url)


async def test_a_server_that_another_forge_starts_there_meanwhile_is_not_taken_for_ours(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge.backends.servers.server_manager.is_free", lambda _: True)
    async with make() as other:
        with pytest.raises(BackendError, match="so another server answers"):
            await make(port=urlsplit(other.url).port).start()
        assert alive(other.url)


async def test_props_in_another_form_are_no_refusal(make: Make) -> None:
    async with make("newer") as server:
        assert alive(server.url)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"environment": {"LLAMA_API_KEY": KEY}}, KEY),
        ({"environment": {"LLAMA_API_KEY": "other"}, "api_key": KEY}, KEY),
        ({"headers": {"Authorization": f"Bearer {KEY}"}}, ""),
    ],
)
def test_a_key_of_ones_own_takes_the_place_of_a_random_one(tmp_path: Path, options: dict[str, Any], key: str) -> None:
    assert ServerManager(Launch(model=gguf(tmp_path)), **options).api_key == key


def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    model = gguf(tmp_path)
    assert "there is no llama-server on the PATH. Install llama.cpp" in failure(ServerManager(Launch(model=model)))
    assert "is not a program" in failure(ServerManager(Launch(model=model, executable=str(tmp_path / "nowhere"))))
    text = tmp_path / "text"
    text.write_text("This is no program.")
    text.chmod(0o755)
    said = failure(ServerManager(Launch(model=model, executable=str(text))))
    assert "exit code 126" in said
    assert "Is it a program for this machine" in said


@pytest.mark.parametrize(
    ("mode", "tokens", "found"),
    [(None, None, 8192), (BudgetMode.MANUAL, 600, 600)],
)
async def test_the_budget_is_who_s_it_is_to_say(
    make: Make, mode: BudgetMode | None, tokens: int | None, found: int
) -> None:
    async with make(budget=mode, context_tokens=tokens) as server:
        assert server.budget.tokens == found
        assert context(server) == found


def test_the_fast_budget_is_half_of_the_full_one(make: Make) -> None:
    async def budget(mode: BudgetMode) -> ResolvedBudget:
        async with make(budget=mode) as server:
            return server.budget

    full, fast = (asyncio.run(budget(mode)) for mode in (BudgetMode.FORGE_FULL, BudgetMode.FORGE_FAST))
    assert fast.tokens == full.tokens // 2
    assert fast.source.startswith(f"half of {full.tokens}: ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"budget": BudgetMode.MANUAL}, "needs the number of tokens"),
        ({"budget": BudgetMode.FORGE_FULL, "context_tokens": 4}, "finds the number itself"),
    ],
)
def test_budgets_that_contradict_themselves_are_refused(make: Make, options: dict[str, object], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        make(**options)


def test_the_command_line_says_all_of_why_a_server_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(
        "from forge import Workflow, tool\n@tool\ndef end() -> str:\n    '''End.'''\n    return 'ok'\n"
        "workflow = Workflow('w', tools=[end], terminal_tool='end')\n"
    )
    installed(tmp_path, "illegal")
    monkeypatch.setenv("PATH", str(tmp_path))
    words = ("run", str(flow), "Go.", "--backend", f"llama-server:{gguf(tmp_path)}", "--journal", str(tmp_path / "j"))
    done = forge(*words)
    assert done.returncode == 1
    (log,) = log_folder().iterdir()
    for word in ("exit code 132", "newer processor", "--backend local", str(log), f"| loading {tmp_path}/model.gguf"):
        assert word in done.stdout
    assert "more)" not in done.stdout, "cut off"


class Ollama(JsonHandler):
    """What Ollama's documentation says of these two questions."""

    def post(self, asked: dict[str, str]) -> None:
        if self.path != "/api/show" or asked["model"] != "qwen3:8b":
            return self.tell(404, {"error": f"model '{asked['model']}' not found"})
        return self.tell(200, {"parameters": "num_ctx    8192", "model_info": {"qwen3.context_length": 40960}})

    def get(self) -> None:
        loaded = {"models": [{"name": "qwen3:8b", "context_length": 16384}]}
        self.tell(200, loaded if self.path in {"/api/ps", "/api/tags"} else {})


@pytest.fixture
def ollama() -> Iterator[str]:
    with threaded(Ollama) as address:
        yield address


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, 16384),
        ({"context_tokens": 2000}, 2000),
        ({"context_tokens": 99999}, 40960),
        ({"budget": "forge-fast"}, 2048),
    ],
)
def test_ollama_is_attached_to_with_a_context_that_it_is_asked_for(
    ollama: str, options: dict[str, object], tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no GPU, for this test
    if "budget" in options:
        options = {"budget": BudgetMode.FORGE_FAST}
    backend = AttachedOllama("qwen3:8b", url=ollama, **options)  # type: ignore[arg-type]  # of a table

    async def go() -> int:
        async with backend.connect() as connection:
            await backend.stop()
            assert f'"num_ctx":{tokens}'.encode() in bytes(
                wire(connection.setup.dialect).head("m", connection.setup.sampling, ())
            )
            return connection.setup.context_tokens

    assert asyncio.run(go()) == tokens


def test_a_model_that_ollama_has_not_got_is_named_with_what_to_do(ollama: str) -> None:
    with pytest.raises(ForgeError, match="run: ollama pull gone"):
        asyncio.run(AttachedOllama("gone", url=ollama).start())
    with pytest.raises(ForgeError, match=r"Did you mean qwen3:8b\?"):
        asyncio.run(AttachedOllama("qwen3:8", url=ollama).start())


def test_an_ollama_that_does_not_run_is_not_started() -> None:
    with pytest.raises(BackendError, match="Is the server running"):
        asyncio.run(AttachedOllama("qwen3:8b", url="http://127.0.0.1:1").start())


async def test_one_call_sets_up_a_server_and_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    server, budget = await setup_backend("llama-server", gguf(tmp_path), manual_tokens=1024, n_slots=2)
    assert isinstance(server, ServerManager)
    assert budget == ResolvedBudget(tokens=1024, source="as given")
    assert context(server) == 1024
    await server.stop()
    with pytest.raises(DefinitionError, match="only attached to"):
        await setup_backend("ollama", "qwen3:8b", n_slots=4)


def test_what_a_backend_s_name_starts(tmp_path: Path) -> None:
    file = gguf(tmp_path)
    for name in [f"llama-server:{file}", "llama-server:smollm2-135m", "llama-server:org/repo:Q4_K_M"]:
        assert isinstance(named(name), ServerManager), name
    for name in ["llama-server", "llama-server:any", "llama-server:http://127.0.0.1:1", "vllm:org/model"]:
        assert isinstance(named(name), Server), name
    with pytest.raises(ForgeError, match=r"there is no model 'gone\.gguf'"):
        named("llama-server:gone.gguf")
    with pytest.raises(ForgeError, match="two models are given"):
        named(f"llama-server:{file}", "another")
