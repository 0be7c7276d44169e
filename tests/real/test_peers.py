"""Peers as players, in their own environments, on a scripted model: the same tools, seeds and counts as forge has."""

import subprocess
from pathlib import Path

import httpx
import pytest

from forge.journal.records import read_journal
from tests.evals.running import command, rows, served

PLAYERS = str(Path(__file__).parents[2] / "benchmarks" / "peers" / "players.py")


@pytest.mark.parametrize("peer", ["forge-guardrails:native", "pydantic-ai:default", "pydantic-ai:tool"])
def test_a_peer_plays_as_forge_does(tmp_path: Path, peer: str) -> None:
    with served() as server:
        scenarios = ("--scenario", "refund_rightly,refund_wrong,refund_text")
        words = command(tmp_path, server, PLAYERS, *scenarios, "--against", peer, "--runs", "1")
        # A peer's own process ends with the command's.
        ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        asked = httpx.get(f"{server}/asked").json()
    assert ended.returncode == 0, ended.stderr
    found = {name: row for (who, name, _), row in rows(tmp_path).items() if who != "forge auto"}
    assert {name: row.verdict for name, row in found.items()} == {
        "refund_rightly": "right",
        "refund_wrong": "harm",
        "refund_text": "unfinished",
    }, found
    row = found["refund_rightly"]
    assert len(read_journal(tmp_path / row.journals[0]).entries) == 4
    assert (row.calls, row.performed, row.input_tokens) == (2, 2, 200)
    assert [body["seed"] for body in asked[:4]] == [1001, 1002, 1001, 1002]
