"""`forge chat` in a pipe: each line is a message, each event a line; the exit code tells of halts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripted_model import completion
from tests.scripted_server import requests_of, scripted_server

AGENT = '''
import asyncio
from forge import Agent, tool
from forge.interpreters.scripted import Scripted, call
from stages.effect import Fault

@tool(approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

@tool(effect="read")
async def wait() -> str:
    """Wait."""
    await asyncio.Event().wait()
    return "never"

def made(*script):
    return Agent("till", backend=Scripted(script), tools=[pay, wait])

paying = made(call("pay", amount=5))
waiting = made(call("wait"))
failing = made(Fault(kind="unreachable", detail="nobody"), "Here again.")
'''


def chat(folder: Path, typed: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "FORGE_STATE": str(folder / "state")}
    command = [sys.executable, "-m", "forge", "chat", *words]
    return subprocess.run(command, input=typed, capture_output=True, text=True, check=False, cwd=folder, env=env)


def test_each_line_is_a_message_and_the_conversation_goes_on_in_the_next_program(tmp_path: Path) -> None:
    script = [completion("Hello\nAda."), completion("Fine."), completion("You are Ada.")]
    with scripted_server(tmp_path, script) as address:
        options = ("--backend", address, "--mode", "native", "--no-probe")
        first = chat(tmp_path, "I am Ada.\n\nHow are you?\n", *options)
        second = chat(tmp_path, "Who am I?\n", *options, "--resume")
        asked = requests_of(address)
    assert (first.returncode, first.stderr) == (0, "")
    lines = first.stdout.splitlines()
    assert lines[-6:-3] == ["      you  I am Ada.", "   answer  Hello", "           Ada."]
    assert lines[-1] == "   answer  Fine."
    assert "\x1b" not in first.stdout
    assert (second.returncode, second.stdout.splitlines()[-1]) == (0, "   answer  You are Ada.")
    assert "I am Ada." in str(asked[2])
    listed = chat(tmp_path, "", "--sessions")
    assert listed.returncode == 0
    assert listed.stdout.rstrip().endswith("I am Ada.")


def test_a_halt_is_told_and_the_next_line_goes_on_and_the_code_is_1(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    done = chat(tmp_path, "Hi.\nAre you there?\n", "till.py:failing")
    assert (done.returncode, done.stderr) == (1, "")
    assert "  stopped  the model's server cannot be reached" in done.stdout
    assert done.stdout.splitlines()[-1] == "   answer  Here again."


def test_nobody_can_approve_in_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    done = chat(tmp_path, "Pay.\n", "till.py:paying")
    assert done.returncode == 1
    assert "pay needs a person's approval, and nobody is there to ask" in done.stdout
    assert "paid" not in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing.py:agent"], "there is no file nothing.py; write the agent as FILE.py:NAME"),
        (["till.py"], "till.py has more than one agent: paying, waiting, failing; write till.py:NAME"),
        (
            ["till.py:payin"],
            "till.py has no agent named 'payin'; it has: paying, waiting, failing. Did you mean paying?",
        ),
        (["till.py:paying", "--model", "x"], "--model is for the default agent"),
        (["till.py:paying", "--resume"], "no conversation was held in this folder yet"),
        (["--backend", "http://127.0.0.1:1"], "cannot connect to http://127.0.0.1:1"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_read(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    done = chat(tmp_path, "Hi.\n", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    env = {**os.environ, "FORGE_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-m", "forge", "chat", "till.py:paying"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=env) as running:
        assert running.stdout is not None
        while "/help" not in running.stdout.readline():
            pass
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
        assert running.stderr is not None
        assert "Traceback" not in running.stderr.read()


def test_a_conversation_without_a_message_is_not_saved_under_a_name(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    done = chat(tmp_path, "/save early\n", "till.py:paying")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "  problem  you have said nothing yet that could be saved"


def test_a_signal_while_it_works_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "till.py").write_text(AGENT)
    env = {**os.environ, "FORGE_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-m", "forge", "chat", "till.py:waiting"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=env) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("Wait.\n")
        running.stdin.flush()
        while not running.stdout.readline().startswith("    calls  wait"):
            pass
        running.send_signal(signal.SIGTERM)
        assert running.wait() == 143
        assert running.stdout.read().splitlines()[-1] == "  stopped  the work was cancelled"
