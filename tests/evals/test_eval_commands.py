"""`forge eval report` and `forge eval check`: what they print, write and refuse, and their exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from forge.cli.dispatch import run_command
from tests.commands import forge
from tests.evals.rows import AUTO, PLAIN, configuration, row, rows_of, suite, written

TWO = {AUTO: 0.95, PLAIN: 0.2}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return written(tmp_path / "results.jsonl", suite(seeds=5, skills=TWO))


def worse(path: Path) -> Path:
    return written(path, suite(seeds=5, skills={AUTO: 0.3, PLAIN: 0.2}, seed=11))


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What the command says on standard error; it has to exit with 2."""
    assert run_command(["eval", *map(str, words)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("forge: ")
    return said.err


def test_the_report_in_a_pipe_is_markdown_and_in_a_terminal_laid_out(results: Path) -> None:
    piped = forge("eval", "report", results.name, "--against", "forge auto", cwd=results.parent)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert "\x1b" not in piped.stdout
    lines = piped.stdout.splitlines()
    assert lines[:3] == ["# Evals", "", lines[2]]
    assert lines[2].startswith("120 runs, 12 scenarios by 2 configurations, 5 seeds each")
    assert [line for line in lines if line.startswith("- forge auto is better than plain: in ")]
    assert next(line.split(" | ") for line in lines if line.startswith("| basic_2step"))[1].endswith("/5")
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "200", "NO_COLOR": "1"}
    shown = forge("eval", "report", results.name, "--against", "forge auto", cwd=results.parent, **terminal)
    assert "| basic_2step" not in shown.stdout
    assert "basic_2step" in shown.stdout
    titled = forge("eval", "report", results.name, "--title", "Night of *June*", cwd=results.parent)
    assert titled.stdout.startswith("# Night of \\*June\\*\n\n120 runs")


def test_a_page_replaces_no_results(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = results.read_bytes()
    assert "already exists and is not a page" in refused(capsys, "report", results, "--html", results)
    assert results.read_bytes() == before


def test_without_scipy_runs_are_made_and_replayed_and_reports_say_what_is_missing(results: Path) -> None:
    code = """
import sys
sys.modules["scipy"] = None
import forge.cli.compare, forge.cli.eval_run, forge.cli.replay
from forge.cli.dispatch import run_command
sys.exit(run_command(["eval", "report", "results.jsonl"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=results.parent)
    assert done.returncode == 2
    assert "need scipy, which is not installed here; run, in the folder of forge's source: pip" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_files_say_cannot_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = replace(row(scenario="\x1b[2J[red]\nx", verdict="unjudged"), why="\x1b]0;owned\x07[/bold]")
    assert run_command(["eval", "report", str(written(tmp_path / "evil.jsonl", [evil, row(PLAIN)]))]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"\[red\]" in said
    assert r"\[/bold\]" in said


def test_a_page_is_written_that_only_its_owner_may_read(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = results.with_name("report.html")
    assert run_command(["eval", "report", str(results), "--html", str(out)]) == 0
    assert capsys.readouterr().out == f"written: {out}\n"
    assert out.stat().st_mode & 0o777 == 0o600
    content = out.read_text(encoding="utf-8")
    assert "<title>Evals: qwen</title>" in content
    assert str(results.parent) not in content


def test_several_files_are_one_report_but_no_run_counts_twice(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = written(tmp_path / "more.jsonl", rows_of(replace(AUTO, model="other"), ["right"]))
    assert run_command(["eval", "report", str(results), str(more)]) == 0
    assert capsys.readouterr().out.startswith("# Evals\n\n121 runs")
    assert "there twice; a run may count only once" in refused(capsys, "report", results, results)


def test_files_without_runs_and_unknown_names_are_refused(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = written(tmp_path / "empty.jsonl", [])
    assert "there are no runs in" in refused(capsys, "report", empty)
    many = written(tmp_path / "many.jsonl", [row(configuration(mode=f"m{n}")) for n in range(257)])
    assert "257 configurations; at most 256 can be compared" in refused(capsys, "report", many)
    assert "cannot write the page" in refused(capsys, "report", results, "--html", tmp_path / "no" / "page.html")


def test_check_passes_the_same_and_the_better_and_fails_the_worse(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = worse(tmp_path / "new.jsonl")
    assert run_command(["eval", "check", str(results), "--against", str(results)]) == 0
    assert capsys.readouterr().out.endswith("No significant loss.\n")
    assert run_command(["eval", "check", str(lost), "--against", str(results)]) == 1
    said = capsys.readouterr().out
    assert "forge auto is worse than its baseline: in " in said
    assert "No difference shown between plain and its baseline: in " in said
    assert said.splitlines()[-1] == "1 significant loss."
    assert run_command(["eval", "check", str(results), "--against", str(lost)]) == 0
    assert "forge auto is better than its baseline: in " in capsys.readouterr().out
