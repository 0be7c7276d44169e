"""Ctrl-C in the middle of a tool, then `forge resume`: the command line as a process, against a real server."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from forge.journal.records import read_journal
from stages.effect import Execute
from tests.serving import JsonHandler

FLOW = '''
import threading
from pathlib import Path
from forge import Workflow, tool

@tool
def pay(amount: int) -> str:
    """Pay, and hang."""
    with Path(__file__).with_name("paid").open("a") as file:
        file.write(f"{amount}\\n")
    print("paying", flush=True)
    threading.Event().wait()
    return "paid"

@tool
def finish() -> str:
    """Finish."""
    return "ok"

workflow = Workflow("till", tools=[pay, finish], terminal_tool="finish")
'''


class Model(JsonHandler):
    """Pays first, and finishes once it was answered."""

    def post(self, asked: dict[str, list[dict[str, object]]]) -> None:
        answered = any(message["role"] == "tool" for message in asked["messages"])
        name, arguments = ("finish", "{}") if answered else ("pay", '{"amount": 5}')
        made = {"id": "x", "type": "function", "function": {"name": name, "arguments": arguments}}
        said = {"role": "assistant", "content": None, "tool_calls": [made]}
        self.tell(200, {"choices": [{"message": said, "finish_reason": "tool_calls"}]})


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_ctrl_c_in_a_tool_that_hangs_and_then_going_on(tmp_path: Path, model: str) -> None:
    flow, journal = tmp_path / "flow.py", tmp_path / "run.jsonl"
    flow.write_text(FLOW)
    forge, options = [sys.executable, "-m", "forge"], ["--backend", model, "--mode", "native"]
    command = [*forge, "run", str(flow), "Go.", *options, "--journal", str(journal)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert "paying\n" in iter(running.stdout.readline, "")
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
    assert running.returncode == 130
    assert "halted  cancelled after 1 model call" in rest
    assert f"To resume it: forge resume {flow} {journal} --backend {model}" in rest
    assert isinstance(read_journal(journal).pending, Execute)
    command = [*forge, "resume", str(flow), str(journal), *options]
    resumed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert f"resumes after 1 step of {journal}" in resumed.stdout
    assert "pay was begun, but the program ended before its result came" in resumed.stdout
    assert "done  finish returned" in resumed.stdout
    assert (tmp_path / "paid").read_text() == "5\n"
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "done  finish returned" in ended.stdout, "resumed once more, it says how it ended"


def test_a_journal_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    command = [sys.executable, "-m", "forge", "resume", str(tmp_path / "flow.py"), "none", "--backend", "local"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot read the journal none" in done.stderr


SHOP = FLOW.replace("threading.Event().wait()\n    return", "return 'receipt 1234-5678 of the Golden Goose' or")


def test_what_is_redacted_is_not_in_the_journal(tmp_path: Path, model: str) -> None:
    flow, journal = tmp_path / "flow.py", tmp_path / "run.jsonl"
    flow.write_text(SHOP)
    command = [sys.executable, "-m", "forge", "run", str(flow), "Pay: open-sesame", "--backend", model, "--no-probe"]
    hide = ["--redact", "pay", "--redact", "*.amount", "--redact-env", "SHOP_TOKEN", "--redact-pattern", r"\d{4}-\d{4}"]
    done = subprocess.run(
        [*command, "--mode", "native", "--journal", str(journal), *hide],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SHOP_TOKEN": "open-sesame"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    written = journal.read_text()
    assert not [secret for secret in ("1234-5678", "Golden Goose", "open-sesame") if secret in written]
    assert "Golden Goose" in done.stdout, "whoever runs it sees it"
    assert read_journal(journal).header.redacted == ("argument *.amount", "result pay", "1 value", "1 pattern")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (("--redact", "nope"), "there is no tool 'nope' with results to hide; tools: pay, finish"),
        (("--redact-pattern", "("), "'(' is not a valid RE2 pattern: missing ): ("),
        (("--redact-env", "NO_SUCH"), "--redact-env NO_SUCH: that environment variable is not set"),
    ],
)
def test_a_wrong_redaction_is_refused_before_the_model_is_reached(
    tmp_path: Path, option: tuple[str, str], says: str
) -> None:
    flow, nobody = tmp_path / "flow.py", "http://127.0.0.1:1"
    flow.write_text(FLOW)
    command = [sys.executable, "-m", "forge", "run", str(flow), "Go.", "--backend", nobody, *option]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stderr
