"""`forge agent run` as a process, against a real server: codes, the record, plain lines, kill -9 and going on."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from forge import Scripted, run_sync
from forge.agent import Agent
from forge.cli.commands import parse
from forge.cli.completion import script
from tests.commands import forge as command
from tests.scripted_server import calling, scripted_server

DESK = 'from forge.agent import Agent\n\ndesk = Agent("desk", backend="http://127.0.0.1:9")\n'
CHECK = "import sys; sys.path.insert(0, 'src'); import calc; assert calc.add(1, 2) == 3"


READ = calling("read_file", path="src/calc.py")
MEND = calling("edit_file", path="src/calc.py", old_snippet="a - b", new_snippet="a + b")
DONE = calling("task_completion", result="Mended.")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "check.py").write_text(CHECK)
    gate = json.dumps([sys.executable, "check.py"])
    file = tmp_path / "task.toml"
    file.write_text(f'task = "Mend add."\n[limits]\nwrite = ["src"]\n[[gates]]\ncommand = {gate}\n')
    return file


def forge(*words: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return command(*words, cwd=cwd, FORGE_STATE=str(cwd / "state"))


def process(
    folder: Path, address: str, *words: str, stdin: int | None = None, stdout: int = DEVNULL, stderr: int = DEVNULL
) -> "subprocess.Popen[str]":
    """The task in a process of its own."""
    run = [sys.executable, "-m", "forge", "agent", "run", "task.toml", *words, *options(address)]
    environment = {**os.environ, "FORGE_STATE": str(folder / "state"), "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(run, cwd=folder, env=environment, text=True, stdin=stdin, stdout=stdout, stderr=stderr)


def options(address: str) -> list[str]:
    return ["--backend", address, "--mode", "native"]


JOURNAL = ("--journal", "run.jsonl")


def test_a_task_done_prints_a_record_and_plain_lines_beside_it(task: Path) -> None:
    with scripted_server(task.parent, [READ, calling("run_command", command=["ls"]), MEND, DONE]) as address:
        done = forge("agent", "run", "task.toml", *options(address), cwd=task.parent)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["outcome"], record["result"], record["files_changed"]) == ("done", "Mended.", ["src/calc.py"])
    assert (record["model_calls"], record["prompt_tokens"]) == (4, 44)
    assert done.stdout.count("\n") == 1
    assert "\x1b" not in done.stderr
    assert "turn 1 " in done.stderr
    assert done.stderr.splitlines()[-1] == "done: Mended."


def test_a_task_whose_progress_nobody_reads_goes_on(task: Path) -> None:
    with (
        scripted_server(task.parent, [READ, MEND, DONE]) as address,
        process(task.parent, address, stdout=PIPE, stderr=PIPE) as running,
    ):
        assert running.stdout is not None
        assert running.stderr is not None
        running.stderr.readline()
        running.stderr.close()
        assert json.loads(running.stdout.read())["outcome"] == "done"
        assert running.wait() == 0


def test_the_record_goes_to_a_file_and_gates_that_fail_have_their_code(task: Path) -> None:
    task.write_text(task.read_text().replace("[limits]", "gate_attempts = 1\n[limits]"))
    with scripted_server(task.parent, [READ, DONE]) as address:
        done = forge("agent", "run", "task.toml", "--record", "record.json", *options(address), cwd=task.parent)
    assert (done.returncode, done.stdout) == (3, "")
    record = json.loads((task.parent / "record.json").read_text())
    assert (record["outcome"], record["exit_code"], record["result"]) == ("gates_failed", 3, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
def test_a_record_that_cannot_be_written_is_printed(task: Path) -> None:
    with scripted_server(task.parent, [READ, MEND, DONE]) as address:
        done = forge("agent", "run", "task.toml", "--record", "/dev/full", *options(address), cwd=task.parent)
    assert json.loads(done.stdout)["result"] == "Mended."
    assert "the record cannot be written to /dev/full: No space left on device" in " ".join(done.stderr.split())


def test_the_record_is_printed_with_its_code_though_the_journal_is_damaged(task: Path) -> None:
    damage = [sys.executable, "-c", "open('j.jsonl', 'w').close()"]
    task.write_text(task.read_text().replace("[limits]", f"[limits]\ncommands = [{json.dumps(damage)}]"))
    with scripted_server(task.parent, [READ, MEND, calling("run_command", command=damage)]) as address:
        words = ("agent", "run", "task.toml", "--journal", "j.jsonl", "--record", "record.json")
        done = forge(*words, *options(address), cwd=task.parent)
    assert done.returncode == 1, done.stderr
    assert json.loads((task.parent / "record.json").read_text())["files_changed"] == ["src/calc.py"]
    assert done.stderr.splitlines()[-1] == "halted"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gone.toml"], "the task file gone.toml cannot be read: No such file or directory"),
        (["task.toml"], "task.toml has no backend; add one, or give --backend"),
        (["task.toml", "--record", "no/where.json"], "--record: there is no folder no"),
        (["task.toml", "--record", "src"], "--record: src is a folder; name a file in it"),
        (
            ["task.toml", "--resume", "a", "--journal", "b"],
            "--resume continues the journal that it names: leave one out",
        ),
        (
            ["task.toml", "--resume", "none.jsonl", "--backend", "http://127.0.0.1:9"],
            "cannot read the journal none.jsonl",
        ),
        (["task.toml", "--journal", "task.toml"], "the file task.toml already exists"),
        (
            ["own.toml", "--max-tokens", "7"],
            "or --backend, an agent uses its own; leave out --model small --max-tokens 7",
        ),
    ],
)
def test_wrong_usage_is_told_before_anything_happens(task: Path, words: list[str], said: str) -> None:
    task.with_name("desk.py").write_text(DESK)
    task.with_name("own.toml").write_text('task = "Refund order 7."\nagent = "desk.py"\nmodel = "small"\n')
    done = forge("agent", "run", *words, cwd=task.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_server_that_is_not_there_is_said_with_the_way_on(task: Path) -> None:
    words = ["agent", "run", "task.toml", "--journal", "run.jsonl", "--no-probe", *options("http://127.0.0.1:9")]
    done = forge(*words, cwd=task.parent)
    assert (done.returncode, json.loads(done.stdout)["outcome"]) == (1, "halted")
    assert "no reply from the model" in done.stderr


def test_killed_in_the_middle_of_a_gate_it_goes_on_where_it_was(task: Path) -> None:
    os.mkfifo(task.parent / "pipe")
    (task.parent / "check.py").write_text(
        f"{CHECK}\nfrom pathlib import Path\nif not Path('once').exists():\n    Path('once').touch()\n"
        "    Path('pipe').write_text('here')\n    import time; time.sleep(600)\n"
    )
    with scripted_server(task.parent, [READ, MEND, DONE]) as address:
        with process(task.parent, address, *JOURNAL) as running:
            assert (task.parent / "pipe").read_text() == "here", "the gate after the change is under way"
            running.send_signal(signal.SIGKILL)
        assert running.returncode == -signal.SIGKILL
        done = forge("agent", "run", "task.toml", "--resume", "run.jsonl", *options(address), cwd=task.parent)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["outcome"], record["model_calls"], record["lines_changed"]) == ("done", 3, 2)
    assert [gate["passed"] for gate in record["gates"]] == [True]


def test_sigterm_ends_it_with_a_record_and_the_command_that_goes_on(task: Path) -> None:
    os.mkfifo(task.parent / "pipe")
    run = ["sh", "-c", "echo here > pipe; sleep 600"]
    task.write_text(task.read_text().replace("[limits]", f"[limits]\ncommands = [{json.dumps(run)}]"))
    with (
        scripted_server(task.parent, [calling("run_command", command=run)]) as address,
        process(task.parent, address, *JOURNAL, stdout=PIPE, stderr=PIPE) as running,
    ):
        assert (task.parent / "pipe").read_text() == "here\n"
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate()
    assert running.returncode == 143
    record = json.loads(out)
    assert (record["outcome"], record["exit_code"], record["commands"]) == ("cancelled", 143, [])
    assert record["unknown"] == [{"tool": "run_command", "arguments": {"command": run}}]
    assert f"To resume it: forge agent run task.toml --resume run.jsonl --backend {address} --mode native" in err


def test_aborted_it_names_the_call_whose_outcome_is_unknown(task: Path) -> None:
    (task.parent / "desk.py").write_text(
        "import time\nfrom pathlib import Path\nfrom forge import tool\nfrom forge.agent import Agent\n\n\n@tool\n"
        'async def refund(order: int) -> str:\n    """Refund an order."""\n    Path("pipe").write_text("here")\n'
        '    time.sleep(600)\n\n\ndesk = Agent("desk", tools=[refund], backend="http://127.0.0.1:9")\n'
    )
    task.write_text('task = "Refund order 7."\nagent = "desk.py:desk"\n[limits]\ntools = ["refund"]\n')
    os.mkfifo(task.parent / "pipe")
    with (
        scripted_server(task.parent, [calling("refund", order=7)]) as address,
        process(task.parent, address, *JOURNAL, stderr=PIPE) as running,
    ):
        assert (task.parent / "pipe").read_text() == "here"
        while running.poll() is None:  # two that come together may be heard as one
            running.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                running.wait(0.1)
        _, err = running.communicate()
    assert running.returncode == 143
    assert 'Outcome unknown: refund {"order":7} was started and may have taken effect.' in err
    assert f"To resume it: forge agent run task.toml --resume run.jsonl --backend {address} --mode native" in err


def test_a_command_that_was_killed_while_it_ran_leaves_an_unknown_outcome_to_a_person(task: Path) -> None:
    os.mkfifo(task.parent / "pipe")
    run = ["sh", "-c", "echo here > pipe; sleep 600"]
    task.write_text(task.read_text().replace("[limits]", f"[limits]\ncommands = [{json.dumps(run)}]"))
    with scripted_server(task.parent, [calling("run_command", command=run), READ, MEND, DONE]) as address:
        with process(task.parent, address, *JOURNAL) as running:
            assert (task.parent / "pipe").read_text() == "here\n", "the command is running"
            running.send_signal(signal.SIGKILL)
        done = forge("agent", "run", "task.toml", "--resume", "run.jsonl", *options(address), cwd=task.parent)
    record = json.loads(done.stdout)
    assert (done.returncode, record["outcome"], record["result"]) == (5, "needs_person", "Mended.")
    assert record["unknown"] == [{"tool": "run_command", "arguments": {"command": run}}]
    assert "it is unknown whether an interrupted call took effect: run_command" in record["reason"]
    assert f"outcome unknown: run_command {json.dumps({'command': run}, separators=(',', ':'))}" in done.stderr
    assert "To resume it" not in done.stderr, "the run is over"


def test_completion_and_help_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--record" in script("bash")
    with pytest.raises(SystemExit):
        parse(["agent", "--help"])
    said = capsys.readouterr().out
    assert "[[gates]]" in said
    assert "3 gates failed" in said


def test_a_call_that_needs_a_person_is_approved_in_a_terminal_by_resuming(task: Path) -> None:
    (task.parent / "desk.py").write_text(
        "from forge import tool\nfrom forge.agent import Agent\n\n\n@tool(approval=True)\n"
        'def refund(order: int) -> str:\n    """Refund an order."""\n    return "refunded"\n\n\n'
        'desk = Agent("desk", tools=[refund], backend="http://127.0.0.1:9")\n'
    )
    task.write_text('task = "Refund order 7."\nagent = "desk.py:desk"\n[limits]\ntools = ["refund"]\n')
    with scripted_server(task.parent, [calling("refund", order=7), DONE]) as address:
        done = forge("agent", "run", "task.toml", *JOURNAL, *options(address), cwd=task.parent)
        assert (done.returncode, json.loads(done.stdout)["outcome"]) == (5, "needs_person"), done.stderr
        assert "in a terminal, forge resume or forge agent run --resume" in done.stderr
        ours, theirs = pty.openpty()
        with process(task.parent, address, "--resume", "run.jsonl", stdin=theirs, stdout=theirs) as running:
            os.close(theirs)
            os.write(ours, b"y\n")
            code = running.wait(60)
        shown = os.read(ours, 65536).decode()
        os.close(ours)
    assert (code, "refund {" in shown) == (0, True), shown
    assert '"outcome": "done"' in shown


def test_an_agent_s_run_is_resumed_by_the_command_that_is_printed(tmp_path: Path) -> None:
    desk = Agent("desk", backend=Scripted(["It is done."]))
    run_sync(desk.workflow, "Go.", backend=desk.backend, journal=str(tmp_path / "run.jsonl")).unwrap()
    (tmp_path / "desk.py").write_text(DESK)
    done = forge("resume", "desk.py:desk", "run.jsonl", "--backend", "http://127.0.0.1:9", cwd=tmp_path)
    assert (done.returncode, "It is done." in done.stdout) == (0, True), done
