"""Ctrl-C and SIGTERM, at every moment of a run: the exit code, no traceback, what is unknown; `forge resume` after."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forge.journal.records import read_journal
from stages.effect import Execute
from tests.commands import forge, until
from tests.scripted_server import calling
from tests.serving import JsonHandler, threaded

FLOW = '''
import asyncio, threading
from forge import Workflow, tool

@tool
async def pay(amount: int) -> str:
    """Pay, and hang."""
    print("paying", flush=True)
    HANG
    return "receipt 1234-5678 of the Golden Goose"

@tool
def finish() -> str:
    """Finish."""
    return "ok"

workflow = Workflow("till", tools=[pay, finish], terminal_tool="finish", optional_steps="pay", system_prompt="{tone}")
'''
STUBBORN = """while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass"""
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


class Model(JsonHandler):
    """Pays first, and finishes once it was answered; below /silent it never answers."""

    def post(self, asked: dict[str, list[dict[str, object]]]) -> None:
        if self.path.startswith("/silent"):
            self.rfile.read(1)  # until the client is gone
            return
        answered = any(message["role"] == "tool" for message in asked["messages"])
        self.tell(200, calling("finish") if answered else calling("pay", amount=5))


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with threaded(Model) as address:
        yield address


@contextmanager
def running(tmp_path: Path, hang: str, backend: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`forge run` of the workflow whose tool hangs in that way."""
    (tmp_path / "flow.py").write_text(FLOW.replace("HANG", hang))
    command = [sys.executable, "-m", "forge", "run", "flow.py", "Go.", "--backend", backend, "--mode", "native"]
    journal = ["--journal", "run.jsonl", "--var", "tone=dry"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, *journal, *options], stdout=pipe, stderr=pipe, text=True, cwd=tmp_path) as process:
        yield process


def resume_line(told: str) -> list[str]:
    (line,) = (line for line in told.splitlines() if line.startswith("To resume it: "))
    return shlex.split(line.removeprefix("To resume it: "))


def test_a_run_whose_reader_is_gone_is_cancelled_too(tmp_path: Path, model: str) -> None:
    waits = "while not os.path.exists('go'): await asyncio.sleep(0.01)"
    with running(tmp_path, f"import os\n    {waits}", model) as process:
        until(process, "paying")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        (tmp_path / "go").touch()
        assert (process.wait(60), process.stderr.read()) == (141, "")
    ran = [entry.effect for entry in read_journal(tmp_path / "run.jsonl").entries if isinstance(entry.effect, Execute)]
    assert [call.name for effect in ran for call in effect.calls] == ["pay"]


@BOTH
def test_a_run_is_cancelled_and_the_line_that_is_printed_goes_on_with_it(
    tmp_path: Path, model: str, number: int
) -> None:
    options = ("--seed", "7", "--temperature", "0.5", "--max-tokens", "99", "--context", "9000", "--no-probe")
    with running(tmp_path, "await asyncio.Event().wait()", model, *options) as process:
        until(process, "paying")
        process.send_signal(number)
        told, errors = process.communicate()
    assert (process.returncode, errors) == (128 + number, "")
    assert "halted  cancelled in turn 1" in told
    assert ("press Ctrl-C again to abort" in told) is (number == signal.SIGINT)
    assert 'Outcome unknown: pay {"amount":5} was started and may have taken effect.' in told
    command = resume_line(told)
    assert command[:6] == ["forge", "resume", "flow.py", "run.jsonl", "--backend", model]
    assert sorted(command[6:]) == sorted(("--mode", "native", *options))
    assert isinstance(read_journal(tmp_path / "run.jsonl").pending, Execute)
    for _ in range(2):  # resumed once more, it says how it ended
        again = forge(*command[1:], cwd=tmp_path)
        assert (again.returncode, again.stderr) == (0, "")
        assert "done  finish returned" in again.stdout
        assert "paying" not in again.stdout
    resumed = [entry.outcome for entry in read_journal(tmp_path / "run.jsonl").entries]
    assert "pay was started, but the program ended before its result came" in str(resumed)


def test_while_the_model_is_silent(tmp_path: Path, model: str) -> None:
    with running(tmp_path, "", f"{model}/silent", "--no-probe") as process:
        until(process, "turn 1")
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert "halted  cancelled in turn 1" in told
    assert "Outcome unknown" not in told
    assert len(read_journal(tmp_path / "run.jsonl").entries) == 0


def test_while_the_server_is_asked_what_it_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        backend = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with running(tmp_path, "", backend) as process:
            asked, _ = silent.accept()
            with asked:
                process.send_signal(signal.SIGINT)
                told, _ = process.communicate()
    assert process.returncode == 130
    assert "halted  cancelled before the first model call" in told
    assert "To resume it" not in told
    assert not (tmp_path / "run.jsonl").exists()


@pytest.mark.parametrize("hang", [STUBBORN, "threading.Event().wait()"], ids=["stubborn", "blocks the loop"])
def test_the_second_aborts_at_once(tmp_path: Path, model: str, hang: str) -> None:
    with running(tmp_path, hang, model, "--seed", "7") as process:
        until(process, "paying")
        while process.poll() is None:  # two that come together may be heard as one
            process.send_signal(signal.SIGINT)
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        _, errors = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert errors.split()[:1] == ["aborted"]
    assert 'Outcome unknown: pay {"amount":5} was started' in errors
    assert resume_line(errors)[-2:] == ["--seed", "7"]


@pytest.mark.parametrize(
    "program", [["-m", "forge"], ["-c", "import sys; from forge_program import main; sys.exit(main())"]]
)
def test_one_that_comes_while_the_program_is_ending_changes_nothing(
    tmp_path: Path, program: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(LAST)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = subprocess.run([sys.executable, *program, "run", "--no-such-option"], capture_output=True, check=False)
    assert done.returncode == 2


def test_what_is_redacted_is_not_in_the_journal(tmp_path: Path, model: str) -> None:
    hide = ("--redact", "pay", "--redact", "*.amount", "--redact-env", "TONE", "--redact-pattern", r"\d{4}-\d{4}")
    (tmp_path / "flow.py").write_text(FLOW.replace("HANG", "").replace("{tone}", ""))
    words = ("run", "flow.py", "Pay: open-sesame", "--backend", model, "--mode", "native", "--no-probe")
    done = forge(*words, "--journal", "run.jsonl", *hide, cwd=tmp_path, TONE="open-sesame")
    assert (done.returncode, done.stderr) == (0, "")
    written = (tmp_path / "run.jsonl").read_text()
    assert not [secret for secret in ("1234-5678", "Golden Goose", "open-sesame") if secret in written]
    assert "Golden Goose" in done.stdout, "whoever runs it sees it"
    redacted = read_journal(tmp_path / "run.jsonl").header.redacted
    assert redacted == ("argument *.amount", "result pay", "1 value", "1 pattern")


LAST = """
import os, signal, sys

class Last:
    def __del__(self, kill=os.kill, own=os.getpid()):
        kill(own, 2)

sys.last = Last()
"""
"""Interrupts the program when Python lets go of its modules, after it has given up its handlers."""


MIDWAY = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.{number})

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("number", "module", "program"),
    [
        (signal.SIGINT, "stages", ["-m", "forge"]),
        (signal.SIGTERM, "forge", ["-c", "from forge_program import main; main()"]),
    ],
)
def test_while_forge_is_imported_there_is_no_traceback(
    tmp_path: Path, number: signal.Signals, module: str, program: list[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(MIDWAY.format(number=number.name, module=module))
    where = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, *program], capture_output=True, text=True, check=False, env=where)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")


@pytest.mark.parametrize(("handler", "code", "told"), [(signal.SIG_DFL, 130, ""), (signal.SIG_IGN, 2, "no workflow")])
def test_while_the_workflow_is_imported_there_is_no_traceback_and_what_was_switched_off_stays_so(
    tmp_path: Path, handler: signal.Handlers, code: int, told: str
) -> None:
    (tmp_path / "flow.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)\n")
    command = [sys.executable, "-m", "forge", "run", "flow.py", "Go.", "--backend", "local"]
    before = signal.signal(signal.SIGINT, handler)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stdout, bool(done.stderr)) == (code, "", bool(told))
    assert told in done.stderr
    assert "Traceback" not in done.stderr
