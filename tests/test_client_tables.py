"""`make clients`: its tables in benchmarks/CLIENTS.md, and the plain functions behind them; what it runs is not run."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.clients import install, report, rows
from tests.clients.rows import Row
from tests.clients.tasks import TASKS

ROW = Row(
    kind="task",
    client="pi",
    version="1",
    check="read",
    server="m",
    proxy=True,
    passed=False,
    seconds=1,
    date="2026-01-01",
    commit="abc",
)


def test_the_tables_say_what_was_run() -> None:
    found = rows.read()
    page = report.PAGE.read_text()
    assert f"{report.BEGIN}\n{report.block(found)}\n{report.END}" in page, "python -m tests.clients.report"
    checks = [row for row in found if row.kind == "check"]
    assert len({(row.client, row.check) for row in checks}) == 11
    assert all(row.passed for row in checks if row.proxy)


def test_what_is_measured_again_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    second, alone = replace(ROW, run=2), replace(ROW, proxy=False)
    rows.keep([ROW, second, alone], path)
    rows.keep([replace(ROW, passed=True)], path)
    assert rows.read(path) == [replace(ROW, passed=True), second, alone]
    assert "| pi 1 | 1 of 2 | 0 of 1 | 1 of 2 | 0 of 1 |" in report.block(rows.read(path))


@pytest.mark.parametrize(
    ("name", "left", "said", "done"),
    [
        ("read", {}, "It leaves from Halden.", True),
        ("read", {}, "It leaves from Oslo.", False),
        ("read", {"notes.txt": "Halden"}, "Halden", False),
        ("change", {"server.ini": "[server]\nhost = 127.0.0.1\nport = 9090\nworkers = 2"}, "", True),
        ("change", {"server.ini": "[server]\nport = 9090\n"}, "Done.", False),
        ("change", {}, "I changed it to 9090.", False),
        ("run", {"runs.log": "done\n"}, "The total is 475.", True),
        ("run", {"runs.log": "done\n"}, "The total is 4755.", False),
        ("run", {}, "The total is 475.", False),
    ],
)
def test_a_task_is_done_by_the_files_and_the_words(name: str, left: Mapping[str, str], said: str, done: bool) -> None:
    (task,) = (task for task in TASKS if task.name == name)
    assert task.done({**task.files, **left}, said) is done


def test_an_old_node_is_told_in_a_sentence_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v20.1.0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FORGE_CLIENTS", str(tmp_path / "cache"))
    with pytest.raises(SystemExit, match=r"needs Node 22 or newer; .*npm install --prefix .*cache/npm/node node@24"):
        install.node()
