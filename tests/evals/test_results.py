"""Files of results read back: what is torn, damaged, of another version or there twice."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from forge.errors import ForgeError
from forge.evals.results import RowFile, read_results, stored_rows
from tests.evals.rows import row, suite, written
from tests.journals import room


def test_rows_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    rows = suite(seeds=2)
    file = written(tmp_path / "results.jsonl", rows)
    assert read_results(file) == tuple(rows)
    found = stored_rows(file)
    assert (found.rows, found.torn, found.size) == (tuple(rows), False, file.stat().st_size)


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_torn_last_line_is_told_to_a_runner_and_refused_to_others(tmp_path: Path, cut: int) -> None:
    file = written(tmp_path / "results.jsonl", [row(seed=1), row(seed=2)])
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    found = stored_rows(file)
    assert (found.rows, found.torn) == ((row(seed=1),), True)
    assert found.size == len(msgspec.json.encode(row(seed=1))) + 1
    with pytest.raises(ForgeError, match=r"line 2 is incomplete, .* again cuts the line off .* remove"):
        read_results(file)


@pytest.mark.parametrize("content", [b'{"mine": 1}', b"\0\1\2", b"notes"])
def test_what_is_no_file_of_results_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.json"
    file.write_bytes(content)
    with pytest.raises(ForgeError, match=r"mine\.json is not a file of results, and is left"), RowFile.locked(file):
        pytest.fail("it was opened")
    assert file.read_bytes() == content


def test_what_is_refused_before_the_first_run_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ForgeError, match="no room"), RowFile.locked(tmp_path / "results.jsonl"):
        raise ForgeError("no room")
    assert [*tmp_path.iterdir()] == []


def test_two_runners_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    refused = pytest.raises(ForgeError, match=r"another forge eval run is writing to .*results.jsonl")
    with RowFile.locked(path), refused, RowFile.locked(path):
        pytest.fail("it was opened")


@pytest.mark.parametrize("cut", [4, 70])
def test_a_first_row_that_was_begun_and_never_ended_is_cut_off(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(msgspec.json.encode(row())[:cut])
    with RowFile.locked(file) as opened:
        assert (opened.rows, opened.torn, file.read_bytes()) == ([], True, b"")


def test_a_row_that_the_disk_took_a_part_of_is_not_taken_for_a_row(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    with RowFile.locked(file) as opened:
        opened.append(row(seed=1))
        with room(file.stat().st_size + 100), pytest.raises(ForgeError, match="the results cannot be written to"):
            opened.append(row(seed=2))
        assert opened.rows == [row(seed=1)]
    with RowFile.locked(file) as opened:
        opened.append(row(seed=3))
    assert read_results(file) == (row(seed=1), row(seed=3))


def test_results_may_come_through_a_pipe() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(msgspec.json.encode(row()) + b"\n")
    assert read_results(f"/dev/fd/{read}") == (row(),)
    os.close(read)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").touch()
    assert read_results(tmp_path / "results.jsonl") == ()


LINES = [msgspec.json.encode(row(seed=seed)) for seed in range(3)]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([LINES[0], LINES[1][:70], LINES[2]], "line 2 is not a row of results"),
        ([LINES[0], b"", LINES[2]], "line 2 is not a row of results"),
        ([LINES[0], b"[" * 100_000, LINES[2]], "line 2 is not a row of results .it is nested deeper than 128 levels"),
        ([LINES[0], b'{"version":1,"seed":4}'], "line 2 is not a row of results: Object missing required field"),
        ([LINES[0].replace(b'"version":1', b'"version":7')], "line 1 is of version 7 of the format, .* version 1 only"),
        ([LINES[0], LINES[1], LINES[0]], "scenario basic_2step, seed 0, forge auto on qwen is there twice"),
        ([b"\xff\xfe\x00"], "line 1 is not a row of results"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path: Path, lines: list[bytes], sentence: str) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"\n".join((*lines, b"")))
    with pytest.raises(ForgeError, match=sentence):
        read_results(file)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ForgeError, match=r"cannot read the results .*nowhere: No such file or directory"):
        read_results(tmp_path / "nowhere")


def test_half_a_character_from_a_model_is_readable(tmp_path: Path) -> None:
    line = msgspec.json.encode(replace(row(), why="HERE")).replace(b"HERE", rb"\ud83d and more")
    (tmp_path / "results.jsonl").write_bytes(line + b"\n")
    assert read_results(tmp_path / "results.jsonl")[0].why == "\ufffd and more"
