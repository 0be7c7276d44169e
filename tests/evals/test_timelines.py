"""Timelines on a report's page: read from journals without their workflows, the worst runs first, within a limit."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from forge import Workflow, run_sync, tool
from forge.cli.eval_report import shown_rows, worst_timelines
from forge.cli.timelines import recorded_timeline
from forge.evals.row import Row
from forge.evals.scenario import RunVerdict
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal.records import read_journal
from stages.effect import Fault
from tests.evals.rows import AUTO, row, written


@tool(effect="read")
def look(what: str) -> str:
    """Look."""
    return f"{what} is in Paris"


@tool(effect="read")
def break_down() -> str:
    """Break."""
    raise ValueError("out of order")


@tool
def finish(result: str) -> str:
    """Finish."""
    return result


DESK = Workflow("desk", tools=[look, break_down, finish], required_steps=["look"], terminal_tool="finish")
SCRIPT: list[Line] = [
    call("finish", result="early"),
    call("look", what="the tower"),
    call("break_down"),
    call("finish", result="done"),
]


def recorded(path: Path, script: list[Line] = SCRIPT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    run_sync(DESK, "Where is it?", backend=Scripted(script), journal=str(path))
    return path


def test_a_journal_tells_what_was_sent_said_and_run_without_its_workflow(tmp_path: Path) -> None:
    sections = recorded_timeline(read_journal(recorded(tmp_path / "run.jsonl")))
    assert [section.title for section in sections] == [f"Model call {number}" for number in (1, 2, 3, 4)]
    told = [[(item.label, item.text) for item in section.items] for section in sections]
    assert ("user", "Where is it?") in told[0]
    assert ("called", 'finish {"result":"early"}') in told[0]
    assert [text for label, text in told[1] if label == "tool" and "look" in text], "the correction"
    assert ("runs", 'look {"what":"the tower"}') in told[1]
    assert ("result", "the tower is in Paris") in told[1]
    assert [text for label, text in told[2] if label == "failed" and "out of order" in text]
    everything = [text for section in told for _, text in section]
    assert everything.count("the tower is in Paris") == 1, "not told again when it is sent to the model"


def test_a_run_that_was_cut_off_says_what_had_been_started(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    (section,) = recorded_timeline(read_journal(path))
    assert section.items[0].text.startswith("started, never finished: ")


def test_a_server_that_was_gone_is_told(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run.jsonl", [Fault(kind="unreachable", detail="nobody there")])
    assert [item for item in recorded_timeline(read_journal(path))[0].items if "nobody there" in item.text]


def rows_with_journals(folder: Path, verdicts: list[RunVerdict]) -> list[Row]:
    """Rows whose journals lie beside `results.jsonl`."""
    made = []
    for seed, verdict in enumerate(verdicts):
        journal = f"results.journals/run-{seed}.jsonl"
        recorded(folder / journal)
        made.append(replace(row(AUTO, "tower", seed, verdict), journals=(journal,)))
    return made


def test_the_worst_runs_come_first_until_there_is_no_room(tmp_path: Path) -> None:
    rows = rows_with_journals(tmp_path, ["right", "unfinished", "harm", "wrong"])
    read = shown_rows([written(tmp_path / "results.jsonl", rows)])
    found = worst_timelines(read, 10_000_000)
    assert [Path(journal).name for journal in found] == ["run-2.jsonl", "run-3.jsonl", "run-1.jsonl", "run-0.jsonl"]
    sizes = [len(msgspec.json.encode(sections)) for sections in found.values()]
    assert list(worst_timelines(read, sum(sizes[:2]))) == list(found)[:2]
    assert worst_timelines(read, 0) == {}


def test_each_cell_has_its_worst_run_before_any_has_its_second(tmp_path: Path) -> None:
    rows = rows_with_journals(tmp_path, ["harm", "harm", "wrong"])
    rows[2] = replace(rows[2], scenario="another")
    read = shown_rows([written(tmp_path / "results.jsonl", rows)])
    assert [Path(journal).name for journal in worst_timelines(read, 10_000_000)] == [
        "run-0.jsonl",
        "run-2.jsonl",
        "run-1.jsonl",
    ]


def test_journals_that_are_gone_or_none_leave_no_timeline(tmp_path: Path) -> None:
    rows = rows_with_journals(tmp_path, ["right", "right", "right"])
    (tmp_path / "results.journals/run-0.jsonl").unlink()
    (tmp_path / "results.journals/run-1.jsonl").write_text("a peer's own notes\n")
    read = shown_rows([written(tmp_path / "results.jsonl", rows)])
    assert [Path(journal).name for journal in worst_timelines(read, 10_000_000)] == ["run-2.jsonl"]


@pytest.mark.parametrize(
    "elsewhere", ["../private.jsonl", "results.journals/../../private.jsonl", "/private.jsonl", "beside.jsonl", ""]
)
def test_a_file_of_results_cannot_put_other_files_on_the_page(tmp_path: Path, elsewhere: str) -> None:
    folder = tmp_path / "evals"
    recorded(tmp_path / "private.jsonl")
    recorded(folder / "beside.jsonl")
    evil = str(tmp_path / "private.jsonl") if elsewhere.startswith("/") else elsewhere
    read = shown_rows([written(folder / "results.jsonl", [replace(row(), journals=(evil,))])])
    assert read[0].journals == ()
    (folder / "results.journals").symlink_to(tmp_path)
    read = shown_rows(
        [written(folder / "results.jsonl", [replace(row(), journals=("results.journals/private.jsonl",))])]
    )
    assert read[0].journals == ()


def test_long_texts_are_cut_and_a_conversation_is_one_timeline(tmp_path: Path) -> None:
    script: list[Line] = [call("look", what="x" * 9_000), call("finish", result="done")]
    journals = ("results.journals/a.0.jsonl", "results.journals/a.1.jsonl")
    for journal in journals:
        recorded(tmp_path / journal, script)
    read = shown_rows([written(tmp_path / "results.jsonl", [replace(row(), journals=journals)])])
    ((_, sections),) = worst_timelines(read, 10_000_000).items()
    assert [title for title, _, _ in sections] == [
        "Model call 1, message 1",
        "Model call 2, message 1",
        "Model call 1, message 2",
        "Model call 2, message 2",
    ]
    texts = [text for _, _, items in sections for _, text in items]
    assert max(map(len, texts)) < 3_100
    assert [text for text in texts if text.endswith("more characters)")]
