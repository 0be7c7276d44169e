"""`forge eval run` on a real model: it starts the server, plays with forge and a plain loop, and stops it."""

import subprocess
import sys
from pathlib import Path

from forge.evals.results import read_results
from forge.journal.records import read_journal


def test_a_scenario_on_the_smallest_model(tmp_path: Path) -> None:
    words = ["--backend", "local", "--model", "smollm2-135m", "--scenario", "basic_2step", "--runs", "1"]
    more = ["--against", "plain", "--max-tokens", "32", "--temperature", "0.7", "-o", "r.jsonl"]
    command = [sys.executable, "-m", "forge", "eval", "run", *words, *more]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr
    rows = read_results(tmp_path / "r.jsonl")
    assert {(row.configuration.name, row.scenario) for row in rows} == {
        (f"{player} t=0.7", "basic_2step") for player in ("forge auto", "plain")
    }
    for row in rows:
        assert (row.configuration.model, row.configuration.backend) == ("smollm2-135m", "llama-server")
        assert row.calls > 0
        assert row.input_tokens > 0
        assert row.digest
        assert all(read_journal(tmp_path / journal).entries for journal in row.journals)
