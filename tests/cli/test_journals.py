"""`forge replay`, `forge bisect`, `forge ablate`: in processes of their own, on a journal of a scripted run."""

import re
import subprocess
from pathlib import Path

import pytest

from forge import run_sync
from forge.cli.run import load_definition
from forge.interpreters.scripted import Line, Scripted, call
from tests.commands import forge as command

FLOW = '''
from forge import Calls, Context, Workflow, tool

@tool(effect="read")
def look(what: str) -> str:
    """Look something up."""
    raise SystemExit("a replay ran a tool")

@tool
def finish(result: str) -> str:
    """Finish."""
    raise SystemExit("a replay ran a tool")

def made(name, **options):
    return Workflow(name, tools=[look, finish], terminal_tool="finish", required_steps=["look"], **options)

workflow = made("desk")
strict = made("strict desk", calls=Calls(rescue_enabled=False))
collapsing = made("desk", context=Context(failed_attempts="collapse"))
'''
FENCED = '```json\n{"name": "look", "arguments": {"what": "a"}}\n```'
SCRIPT: list[Line] = ["Hm. \x1b[2J\x1b]0;owned\x07", FENCED, call("finish", result="ok")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journals")
    running = FLOW.replace('raise SystemExit("a replay ran a tool")', 'return "7"')
    (folder / "running.py").write_text(running)
    (folder / "flow.py").write_text(FLOW)
    workflow = load_definition(f"{folder / 'running.py'}:workflow")
    run_sync(workflow, "Go.", backend=Scripted(SCRIPT), journal=str(folder / "run.jsonl"))
    return folder


def forge(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = command(*arguments, cwd=folder)
    assert "\x1b" not in done.stdout + done.stderr
    return done


def test_a_replay_shows_every_state_and_event_and_runs_nothing(folder: Path) -> None:
    done = forge(folder, "replay", "run.jsonl", "--workflow", "flow.py:workflow")
    assert done.returncode == 0, done.stderr
    for part in (
        *("desk  scripted, native", "state 0  ready", "turn 1 ", "said  Hm.", "corrected  Your reply was plain text"),
        *("[rescued: fenced]", "result  7", "state 13  done", "done  finish returned"),
    ):
        assert part in done.stdout, done.stdout


def test_it_stops_at_a_state_and_shows_all_of_it(folder: Path) -> None:
    done = forge(folder, "replay", "run.jsonl", "--workflow", "flow.py:workflow", "--to", "5")
    assert "state 5  answered" in done.stdout
    assert "state 6" not in done.stdout
    for part in (
        "budget  8 calls\n",
        "retries  1",
        "[0] user_input, turn 0  Go.",
        "[2] retry_nudge, turn 1  Your reply",
    ):
        assert part in done.stdout, done.stdout


def test_a_state_beyond_the_end_is_an_error_after_the_last_one(folder: Path) -> None:
    done = forge(folder, "replay", "run.jsonl", "--workflow", "flow.py:workflow", "--to", "99")
    assert done.returncode == 2
    assert "[0] user_input, turn 0  Go." in done.stdout
    assert "--to 99: the journal ends at state 13" in done.stderr


def test_without_a_workflow_the_record_is_shown(folder: Path) -> None:
    done = forge(folder, "replay", "run.jsonl")
    assert done.returncode == 0
    assert "Model call 1" in done.stdout
    assert "runs  look" in done.stdout
    assert "add --workflow" in forge(folder, "replay", "run.jsonl", "--to", "3").stderr


def test_another_workflow_diverges_and_the_field_is_named(folder: Path) -> None:
    done = forge(folder, "replay", "run.jsonl", "--workflow", "flow.py:collapsing")
    assert done.returncode == 1
    assert "effect 4 (the model call of turn 3) is not the recorded one" in done.stdout
    assert "  request.messages[1].content\n    recorded  " in done.stdout


@pytest.mark.parametrize("command", ["replay", "bisect"])
def test_what_differs_cannot_control_the_terminal(folder: Path, command: str) -> None:
    """A journal may come from anybody; here the tool's description was another one when it was recorded."""
    evil = FLOW.replace("Look something up.", "Look up \\u202e\\x9b31m")
    (folder / "evil.py").write_text(evil.replace('raise SystemExit("a replay ran a tool")', 'return "7"'))
    workflow, record = load_definition(f"{folder / 'evil.py'}:workflow"), folder / f"evil-{command}.jsonl"
    run_sync(workflow, "Go.", backend=Scripted(SCRIPT), journal=str(record))
    done = forge(folder, command, record.name, "--workflow", "flow.py:workflow")
    assert done.returncode == 1
    assert "Look up ��31m" in done.stdout


def test_bisect_names_the_stage_and_the_fields(folder: Path) -> None:
    both = ("--workflow", "flow.py:workflow", "--workflow", "flow.py:strict")
    done = forge(folder, "bisect", "run.jsonl", *both)
    assert done.returncode == 1
    assert "6 states are the same; then, after 2 model calls, the stage validate causes the difference:" in done.stdout
    assert '  phase.type\n    flow.py:workflow  "awaiting"' in done.stdout or "phase.type" in done.stdout
    same = forge(folder, "bisect", "run.jsonl", "--workflow", "flow.py:workflow", "--workflow", "running.py:workflow")
    assert (same.returncode, "no difference" in same.stdout) == (0, True)


def test_bisect_against_the_record_alone(folder: Path) -> None:
    assert forge(folder, "bisect", "run.jsonl", "--workflow", "flow.py:workflow").returncode == 0
    done = forge(folder, "bisect", "run.jsonl", "--workflow", "flow.py:strict")
    assert done.returncode == 1
    assert (
        "after 7 states, effect 3 (the call of look) is not the recorded one: it is the model call of turn 3"
        in done.stdout
    )


def test_ablation_names_the_turns_in_which_a_guardrail_acted(folder: Path) -> None:
    done = forge(folder, "ablate", "run.jsonl", "--workflow", "flow.py:workflow")
    assert done.returncode == 0
    assert "turn 2, rescue\n      with  runs look" in done.stdout
    assert "without  halts (BadReplies)" in done.stdout
    # In a pipe, a line for each.
    assert re.search(r"^rescue: .+; acted in turns 2$", done.stdout, re.MULTILINE)
    assert re.search(r"^retry nudges: .+; acted in turns 1; would have ended.*: turn 1$", done.stdout, re.MULTILINE)
    assert "Without effect in this run: guesses, coercion, " in done.stdout
    assert re.findall(r"^(.+): .+; acted in turns", done.stdout, re.MULTILINE) == ["rescue", "retry nudges"]


def test_the_page_of_a_run_is_its_owner_s_alone(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    done = forge(folder, "replay", "run.jsonl", "--workflow", "flow.py:workflow", "--html", str(out))
    assert (done.returncode, done.stdout.endswith(f"written: {out}\n")) == (0, True)
    assert out.stat().st_mode & 0o777 == 0o600
    for part in ("Turn 1", "Turn 3", 'class="corrected"', 'class="runs"', 'class="done"'):
        assert part in out.read_text()


@pytest.mark.parametrize("command", ["replay", "bisect", "ablate"])
def test_a_file_that_is_no_journal_is_wrong_use(folder: Path, command: str) -> None:
    for file, says in (("flow.py", "flow.py is not a journal"), ("none.jsonl", "cannot read the journal none.jsonl")):
        done = forge(folder, command, file, "--workflow", "flow.py:workflow")
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr
