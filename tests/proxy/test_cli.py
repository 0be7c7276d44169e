"""`forge proxy` as a process: the line when it is ready, the log, signals, what is refused."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.commands import forge
from tests.proxy.test_proxy import asked
from tests.scripted_model import ScriptedModel, completion, hanging, whole

ROOT = Path(__file__).parents[2]


async def started(*words: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "forge", "proxy", "--port", "0", *words]
    return await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=-1, stderr=-1)


async def address(proxy: asyncio.subprocess.Process) -> str:
    """That for Anthropic's clients, out of the first line."""
    assert proxy.stdout is not None
    said = (await proxy.stdout.readline()).decode()
    assert said.startswith("forge proxy: OpenAI clients http://127.0.0.1:")
    return said.rsplit(" ", 1)[1].strip()


async def test_it_serves_until_a_signal_and_logs_each_request_without_a_key() -> None:
    async with ScriptedModel(whole(completion('{"name":"look","arguments":{"at":4}}'))) as model:
        proxy = await started("--backend", model.url)
        url = await address(proxy)
        headers = {"authorization": "Bearer sk-secret-0123456789"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(url + "/v1/chat/completions", json=asked()) as answer,
        ):
            assert answer.status == 200
        proxy.send_signal(signal.SIGTERM)
        _, log = await proxy.communicate()
        assert proxy.returncode == 143
        assert b"POST /chat/completions 200 " in log
        assert b" 11+7 tokens (repaired; rescued look (bare))" in log
        assert b"secret" not in log


async def test_what_is_under_way_is_ended_before_it_stops() -> None:
    gate = asyncio.Event()
    line: Any = whole(completion("At last."))
    line.gates[0] = gate
    async with ScriptedModel(line) as model:
        proxy = await started("--backend", model.url)
        url = await address(proxy)
        async with aiohttp.ClientSession() as session:
            asking = asyncio.create_task(session.post(url + "/v1/chat/completions", json=asked()))
            await model.came.wait()
            proxy.send_signal(signal.SIGTERM)
            await logged(proxy, b"stopping: waiting up to 10 seconds for 1 request")
            gate.set()
            answer = await asking
            assert "At last." in await answer.text()
        await proxy.communicate()
        assert proxy.returncode == 143


async def test_the_second_signal_cuts_off_what_is_under_way() -> None:
    async with ScriptedModel(hanging()) as model:
        proxy = await started("--backend", model.url, "--grace", "60")
        url = await address(proxy)
        async with aiohttp.ClientSession() as session:
            asking = asyncio.create_task(session.post(url + "/v1/chat/completions", json=asked()))
            await model.came.wait()
            proxy.send_signal(signal.SIGTERM)
            await logged(proxy, b"stopping: waiting up to 60 seconds for 1 request")
            proxy.send_signal(signal.SIGINT)
            _, log = await proxy.communicate()
            assert b"stopped; 1 request aborted" in log
            assert proxy.returncode == 130
            await asyncio.wait([asking])


async def logged(proxy: asyncio.subprocess.Process, words: bytes) -> None:
    """Wait for a line of the log with these words."""
    assert proxy.stderr is not None
    while words not in await proxy.stderr.readline():
        assert proxy.returncode is None


async def test_the_policy_is_read_again_at_a_signal_and_one_with_faults_changes_nothing(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('required_steps = "look"')
    words, call = whole(completion("It is a tree.")), whole(completion(None, ("look", '{"at": 4}')))
    async with ScriptedModel(words, call, words, call, words) as model:
        proxy = await started("--backend", model.url, "--policy", str(policy))
        url = await address(proxy)

        async def posts() -> int:
            before = len(model.asked)
            async with (
                aiohttp.ClientSession() as session,
                session.post(url + "/v1/chat/completions", json=asked()) as answer,
            ):
                assert answer.status == 200
            return len(model.asked) - before

        assert await posts() == 2
        policy.write_text('required_steps = "loook"\nmax_repeat = 2')
        proxy.send_signal(signal.SIGHUP)
        await logged(proxy, b"the policy is unchanged: ")
        assert await posts() == 2
        policy.write_text("")
        proxy.send_signal(signal.SIGHUP)
        await logged(proxy, b"the policy was reloaded")
        assert await posts() == 1
        proxy.terminate()
        await proxy.communicate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "::"), "--insecure"),
        (("--backend", "http://127.0.0.1:1"), "cannot connect"),
        (("--max-retries", "-1"), "--max-retries"),
        (("--api-key-env", "NOT_SET"), "the environment variable NOT_SET is not set"),
        (("--backend-api-key-env", "NOT_SET"), "the environment variable NOT_SET is not set"),
        (("--policy", "nowhere.toml"), "the policy nowhere.toml cannot be read"),
        (("--policy", "pyproject.toml"), "unknown key"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    done = forge("proxy", "--port", "0", *words)
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def test_a_policy_cannot_control_the_terminal_that_its_faults_are_told_in(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('required_steps = "a\\u001b]0;owned\\u0007b"\nterminal_tool = "a\\u001b]0;owned\\u0007b"')
    done = forge("proxy", "--port", "0", "--policy", str(policy))
    assert (done.returncode, done.stdout) == (2, "")
    assert "a�]0;owned�b: a terminal tool cannot be a required step" in done.stderr
