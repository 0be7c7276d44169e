"""A run of an eval opened again: how it was judged."""

import subprocess
from pathlib import Path

import pytest

from forge.cli.replay import recorded_row
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


def test_a_journal_away_from_its_results_has_no_row(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "run.jsonl"
    moved.write_bytes(journal(folder, "forge auto", "refund_rightly").read_bytes())
    assert recorded_row(moved) is None
