"""A run of an eval opened again: how it was judged, and its states, from the scenario that it was of."""

import subprocess
from pathlib import Path

import pytest

from forge.cli.eval_journals import journal_workflow, recorded_row
from forge.errors import ForgeError
from tests.commands import forge
from tests.evals.running import rows, run, served


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With runs of forge, of forge without its guardrails, and of a plain loop."""
    path = tmp_path_factory.mktemp("evals")
    with served() as server:
        words = ("--scenario", "refund_rightly,refund_wrong", "--runs", "1", "--ablation", "reforged,bare")
        assert run(path, server, *words, "--against", "plain").returncode == 0
    return path


def journal(folder: Path, configuration: str, scenario: str) -> Path:
    return folder / rows(folder)[configuration, scenario, 1].journals[0]


def replayed(folder: Path, configuration: str, scenario: str, *words: str) -> subprocess.CompletedProcess[str]:
    return forge("replay", str(journal(folder, configuration, scenario)), *words, cwd=folder)


def test_the_record_ends_with_how_the_run_was_judged(folder: Path) -> None:
    shown = replayed(folder, "forge auto", "refund_wrong")
    assert (shown.returncode, shown.stderr) == (0, "")
    told = [line.split(maxsplit=1) for line in shown.stdout.splitlines()[-3:]]
    assert told[0] == ["scenario", "refund_wrong, seed 1, forge auto"]
    assert (told[1][0], told[2][0]) == ("ended", "verdict")
    row = rows(folder)["forge auto", "refund_wrong", 1]
    assert told[1:] == [["ended", row.end], ["verdict", f"{row.verdict}: {row.why}"]]


@pytest.mark.parametrize("configuration", ["forge auto", "forge auto bare"])
def test_a_file_with_the_scenario_replays_it_as_it_was_configured(folder: Path, configuration: str) -> None:
    shown = replayed(folder, configuration, "refund_rightly", "--workflow", "mine.py")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[1].startswith("state 0")


def test_another_workflow_is_one_still(folder: Path) -> None:
    (folder / "other.py").write_text("from forge import Workflow, tool\n\n\n@tool\ndef a() -> str:\n    ...\n\n\n")
    with (folder / "other.py").open("a") as file:
        file.write('w = Workflow("other", tools=[a], terminal_tool="a")\n')
    path = journal(folder, "forge auto", "refund_rightly")
    assert journal_workflow(str(folder / "other.py"), path).name == "other"


OWN = """

@tool
def later() -> str:
    ...


own = Workflow("by name", tools=[later], terminal_tool="later")
"""


def test_a_workflow_that_is_named_is_that_one_though_the_file_has_the_scenario(folder: Path) -> None:
    (folder / "both.py").write_text((folder / "mine.py").read_text() + OWN)
    path = journal(folder, "forge auto", "refund_rightly")
    assert journal_workflow(f"{folder / 'both.py'}:own", path).name == "by name"
    assert journal_workflow(str(folder / "both.py"), path).name == "refund"


def test_other_commands_take_the_scenario_too(folder: Path) -> None:
    path = str(journal(folder, "forge auto", "refund_rightly"))
    for words in (("bisect", path, "--workflow", "mine.py"), ("ablate", path, "--workflow", "mine.py")):
        done = forge(*words, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("damage", [b'{"version":1,"configuration":{"model":"x\n', b"\xff\xfe\n", b'{"mine": "%s"}\n'])
def test_what_else_is_beside_a_journal_does_not_matter(folder: Path, tmp_path: Path, damage: bytes) -> None:
    whole = journal(folder, "forge auto", "refund_rightly")
    name = whole.relative_to(folder / "r.journals")
    copied = tmp_path / "r.journals" / name
    copied.parent.mkdir(parents=True)
    copied.write_bytes(whole.read_bytes())
    (tmp_path / "r.jsonl").write_bytes(damage.replace(b"%s", str(name).encode()))
    assert recorded_row(copied) is None
    (tmp_path / "r.json").write_bytes((folder / "r.jsonl").read_bytes())
    found = recorded_row(copied)
    assert found is not None
    assert found.scenario == "refund_rightly"


def test_what_cannot_be_replayed_is_refused(folder: Path, tmp_path: Path) -> None:
    plain = replayed(folder, "plain", "refund_rightly", "--workflow", "mine.py")
    assert plain.returncode == 2
    assert "the run was made by plain, not by forge" in plain.stderr
    with pytest.raises(ForgeError, match="the built-in suite has no scenario 'refund_rightly'"):
        journal_workflow("suite", journal(folder, "forge auto", "refund_rightly"))
    moved = tmp_path / "run.jsonl"
    moved.write_bytes(journal(folder, "forge auto", "refund_rightly").read_bytes())
    assert recorded_row(moved) is None
    with pytest.raises(ForgeError, match="is not the journal of an eval next to its results"):
        journal_workflow("suite", moved)
