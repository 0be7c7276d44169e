"""`forge eval run` as a process, on a real server process: rows, journals, resuming, and what goes wrong on the way."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from forge.journal.records import read_journal
from tests.commands import forge
from tests.evals.running import command, rows, run, served
from tests.evals.scenarios import SCENARIOS


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served() as address:
        yield address


def test_a_row_says_all_of_a_run_and_names_its_journal(tmp_path: Path, server: str) -> None:
    ended = run(tmp_path, server, "--scenario", "refund_rightly", "--against", "plain")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "forge auto: 2 of 2 right" in ended.stdout
    found = rows(tmp_path)
    assert [*found] == [(name, "refund_rightly", seed) for seed in (1, 2) for name in ("forge auto", "plain")]
    assert {(row.verdict, row.planned) for row in found.values()} == {("right", 2)}
    row = found["forge auto", "refund_rightly", 1]
    assert (row.configuration.model, row.configuration.backend) == ("tiny", "llama-server")
    assert (row.end, row.calls, row.performed, row.ideal_calls, row.context_tokens) == ("Completed", 2, 2, 2, 8192)
    assert (row.input_tokens, row.output_tokens, row.cached_tokens) == (200, 20, 80)
    assert row.cost == pytest.approx((120 * 1.0 + 80 * 0.5 + 20 * 2.0) / 1e6)
    for row in found.values():
        (journal,) = row.journals
        assert len(read_journal(tmp_path / journal).entries) == 4
    told = forge("replay", str(tmp_path / found["plain", "refund_rightly", 1].journals[0])).stdout
    assert 'runs  refund {"total": 11.5}' in told


def test_players_are_sampled_with_the_same_seeds_and_runs_with_other_ones(tmp_path: Path) -> None:
    with served() as server:
        run(tmp_path, server, "--scenario", "refund_rightly", "--against", "plain", "--temperature", "0.7")
        asked: list[dict[str, Any]] = httpx.get(f"{server}/asked").json()
    assert [body["seed"] for body in asked] == [1001, 1002, 1001, 1002, 2001, 2002, 2001, 2002]
    assert {(body["temperature"], body["max_tokens"]) for body in asked} == {(0.7, 512)}


def test_what_goes_wrong_in_one_run_is_its_row(tmp_path: Path, server: str) -> None:
    names = "refund_wrong,refund_text,refund_raises,nothing,flat"
    ended = run(tmp_path, server, "--scenario", names, "--runs", "1")
    assert ended.returncode == 2
    said = "3 runs are unjudged, since the scenario's own code failed: flat, nothing, refund_raises"
    assert said in ended.stderr
    found = {name: row for (_, name, _), row in rows(tmp_path).items()}
    assert {name: (row.verdict, row.end) for name, row in found.items()} == {
        "refund_wrong": ("harm", "Completed"),
        "refund_text": ("unfinished", "BadReplies"),
        "refund_raises": ("unjudged", "Completed"),
        "nothing": ("unjudged", "LookupError"),
        "flat": ("unjudged", "TypeError"),
    }
    assert found["refund_wrong"].why == "paid back [12.5], not 11.5"
    assert found["refund_raises"].why == "a check raised ValueError: no idea"
    assert found["nothing"].why == "the scenario raised LookupError: no data for it"
    assert found["flat"].why == "the scenario raised TypeError: its world function returned NoneType, not World"
    assert found["refund_text"].retries == 3


def test_what_hangs_is_its_row_and_the_rest_goes_on(tmp_path: Path, server: str) -> None:
    ended = run(tmp_path, server, "--scenario", "waits,refund_hang,nothing", "--runs", "1", "--timeout", "3")
    assert ended.returncode == 2
    found = {name: row for (_, name, _), row in rows(tmp_path).items()}
    assert {name: (row.verdict, row.end, row.why) for name, row in found.items()} == {
        "waits": ("unjudged", "Hung", "its world function took longer than 3 s"),
        "refund_hang": ("unfinished", "Timeout", "it took longer than 3 s"),
        "nothing": ("unjudged", "LookupError", "the scenario raised LookupError: no data for it"),
    }


def test_only_what_is_not_in_the_file_is_run(tmp_path: Path, server: str) -> None:
    first = run(tmp_path, server, "--scenario", "refund_rightly")
    assert "2 runs\n" in first.stdout
    assert first.stdout.endswith("Results: r.jsonl. To compare: forge eval report r.jsonl\n")
    before = (tmp_path / "r.jsonl").read_bytes()
    again = run(tmp_path, server, "--scenario", "refund_rightly")
    assert "2 runs, 2 of them in r.jsonl already" in again.stdout
    assert (tmp_path / "r.jsonl").read_bytes() == before
    assert "forge auto: 2 of 2 right" in again.stdout
    more = run(tmp_path, server, "--scenario", "refund_rightly", "--runs", "3", "--ablation", "reforged,bare")
    assert "6 runs, 2 of them in r.jsonl already" in more.stdout
    assert "forge auto: 3 of 3 right" in more.stdout
    assert (tmp_path / "r.jsonl").read_bytes().startswith(before)
    assert len(rows(tmp_path)) == 6


def test_runs_of_a_changed_scenario_are_not_added_to_those_of_the_old_one(tmp_path: Path, server: str) -> None:
    run(tmp_path, server, "--scenario", "refund_rightly", "--runs", "1")
    before = (tmp_path / "r.jsonl").read_bytes()
    changed = SCENARIOS.replace("nothing was paid back", "no money was paid back")
    refused = run(tmp_path, server, "--scenario", "refund_rightly", text=changed)
    assert refused.returncode == 2
    assert "the results have runs from before these scenarios were changed: refund_rightly. " in refused.stderr
    assert (tmp_path / "r.jsonl").read_bytes() == before
    assert run(tmp_path, server, "--scenario", "refund_rightly", text=f"# the same\n{SCENARIOS}").returncode == 0


def test_a_suite_may_be_a_file_beside_one_with_players(tmp_path: Path, server: str) -> None:
    (tmp_path / "players.py").write_text("from forge.evals.players import PLAIN\n")
    (tmp_path / "own.py").write_text(SCENARIOS)
    words = ("players.py", "--suite", "own.py", "--backend", server, "--scenario", "refund_rightly", "--runs", "1")
    told = forge("eval", "run", *words, "-o", "r.jsonl", cwd=tmp_path)
    assert "forge auto on 1 scenario: 1 run" in told.stdout
    assert [*rows(tmp_path)] == [("forge auto", "refund_rightly", 1)]


def test_a_player_that_returns_nothing_is_its_row(tmp_path: Path, server: str) -> None:
    assert run(tmp_path, server, "--scenario", "refund_rightly", "--runs", "1", "--against", "lazy").returncode == 0
    row = rows(tmp_path)["lazy", "refund_rightly", 1]
    assert (row.verdict, row.why) == ("unfinished", "TypeError: the player returned NoneType, not RunEnd")


def test_a_player_that_cannot_play_here_ends_it_and_makes_no_row(tmp_path: Path, server: str) -> None:
    ended = run(tmp_path, server, "--scenario", "refund_rightly", "--runs", "1", "--against", "gone")
    assert (ended.returncode, ended.stderr) == (2, "forge: its environment cannot be made\n")
    assert [*rows(tmp_path)] == [("forge auto", "refund_rightly", 1)]


@contextmanager
def hanging(folder: Path, server: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a run that never ends, after one that did."""
    asked = command(folder, server, "--scenario", "refund_rightly,refund_hang", "--runs", "1", *words)
    pipe = subprocess.PIPE
    with subprocess.Popen(asked, cwd=folder, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        for line in iter(process.stdout.readline, ""):
            if "refund_rightly 1" in line:
                break
        yield process


def test_after_kill_9_it_goes_on_and_an_incomplete_last_line_is_run_again(tmp_path: Path, server: str) -> None:
    with hanging(tmp_path, server) as process:
        process.kill()
    whole = (tmp_path / "r.jsonl").read_bytes()
    (tmp_path / "r.jsonl").write_bytes(whole + whole[:99])
    ended = run(tmp_path, server, "--scenario", "refund_rightly,refund_text", "--runs", "1")
    assert ended.returncode == 0
    assert "The last line of r.jsonl was incomplete; that run is repeated." in ended.stdout
    assert (tmp_path / "r.jsonl").read_bytes().startswith(whole)
    assert [*rows(tmp_path)] == [("forge auto", "refund_rightly", 1), ("forge auto", "refund_text", 1)]


def test_a_signal_ends_it_in_order(tmp_path: Path, server: str) -> None:
    with hanging(tmp_path, server) as process:
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (128 + signal.SIGINT, "")
    assert "Stopped. Run the same command again to continue r.jsonl." in told
    assert [*rows(tmp_path)] == [("forge auto", "refund_rightly", 1)]


def test_a_reader_that_goes_in_the_midst_of_it_ends_it_too(tmp_path: Path, server: str) -> None:
    asked = command(tmp_path, server, "--scenario", "refund_rightly", "--runs", "30", "--parallel", "2")
    pipe = subprocess.PIPE
    with subprocess.Popen(asked, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in iter(process.stdout.readline, ""):
            if "refund_rightly 1" in line:
                break
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (141, "")
    assert 1 <= len(rows(tmp_path)) < 30


@pytest.mark.parametrize(
    ("option", "words", "said"),
    [
        ("seeds=9", ("--seed", "500"), "nothing to run: no chosen scenario has the seeds 500 to 501"),
        ('not_counted=frozenset({"bare"})', ("--ablation", "bare"), "every chosen scenario excludes forge auto bare"),
        ('not_counted=frozenset({"no_compaction"})', (), "Did you mean no_compact?"),
    ],
)
def test_options_of_scenarios_that_leave_nothing_to_run_are_told(
    tmp_path: Path, server: str, option: str, words: tuple[str, ...], said: str
) -> None:
    text = SCENARIOS.replace("ideal_calls=2", f"{option}, ideal_calls=2")
    ended = run(tmp_path, server, "--scenario", "refund_rightly", *words, text=text)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_configuration_that_no_scenario_is_counted_for_is_named(tmp_path: Path, server: str) -> None:
    text = SCENARIOS.replace("ideal_calls=2", 'not_counted=frozenset({"bare"}), ideal_calls=2')
    ended = run(tmp_path, server, "--scenario", "refund_rightly", "--ablation", "reforged,bare", text=text)
    assert "Skipped, because every selected scenario excludes it: forge auto bare" in ended.stdout


def test_as_many_runs_at_once_as_the_server_has_slots(tmp_path: Path) -> None:
    with served(slots=3) as server:  # it answers when three requests wait
        ended = run(tmp_path, server, "--scenario", "refund_together", "--runs", "3")
    assert ended.returncode == 0
    assert {row.verdict for row in rows(tmp_path).values()} == {"right"}


def test_a_server_that_is_lost_ends_it_and_makes_no_rows(tmp_path: Path) -> None:
    with served() as server, hanging(tmp_path, server) as process:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{server}/quit")
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the model's server cannot be used: " in told
    assert [*rows(tmp_path)] == [("forge auto", "refund_rightly", 1)]


@pytest.mark.parametrize("way", ["forbidden", "nobody"])
def test_a_server_that_takes_no_requests_of_ours_makes_no_rows_either(tmp_path: Path, server: str, way: str) -> None:
    ended = run(tmp_path, server, "--scenario", f"refund_{way},refund_rightly", "--against", "plain")
    assert ended.returncode == 1
    assert "the model's server cannot be used: " in ended.stdout
    assert not (tmp_path / "r.jsonl").exists()


def test_no_row_has_the_name_of_a_model_that_the_server_has_not(tmp_path: Path, server: str) -> None:
    ended = run(tmp_path, server, "--scenario", "refund_rightly", "--model", "huge")
    assert ended.returncode == 2
    assert "the server has no model 'huge'; it has /models/tiny.gguf" in ended.stderr
    assert not (tmp_path / "r.jsonl").exists()
    assert run(tmp_path, server, "--scenario", "refund_rightly", "--model", "tiny", "--runs", "1").returncode == 0


def test_probe_runs_nothing(tmp_path: Path, server: str) -> None:
    ended = run(tmp_path, server, "--probe", "--mode", "auto,native")
    assert ended.returncode == 0
    assert "8,192 tokens; the scenarios need 8,192" in ended.stdout
    assert "auto: constrained, native: native" in ended.stdout
    assert not (tmp_path / "r.jsonl").exists()
