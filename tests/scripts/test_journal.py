"""The journal: a run is written down as it happens, and read back as the same run."""

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from returns.result import Failure, Result, Success

from forge import Finished, Halted, drive, resume, run, run_sync
from forge.interpreters.recorded import JournalError, Replay, read_journal
from forge.interpreters.scripted import Line, Scripted, call
from forge.testing import assert_answered
from stages.effect import Fault
from stages.state import State
from tests.flows import Desk
from tests.property.strategies import replies

SCRIPT: list[Line] = ["Hm.", call("look", what="a"), call("write", what="a", text="t"), call("finish", result="ok")]


def replayed(desk: Desk, path: Path) -> Result[Finished, Halted]:
    async def go() -> Result[Finished, Halted]:
        journal = read_journal(path)
        async with Scripted([]).connect() as connection:
            return await drive(desk.workflow.pipeline(connection), journal.header.state, Replay(journal))

    return asyncio.run(go())


def test_a_replay_is_the_run_without_model_or_tools(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.jsonl"
    first = run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    desk = Desk()
    assert replayed(desk, path) == first
    assert desk.log == [], "no tool ran again"


def test_a_replay_with_another_workflow_says_where_it_parts(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    with pytest.raises(JournalError, match="effect 4 is not the recorded one"):
        replayed(Desk(rescue_enabled=False, failed_attempts="collapse"), path)


def test_a_journal_that_ends_early_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n", len(whole) // 2) + 20])
    with pytest.raises(JournalError, match="the journal ends after"):
        replayed(Desk(), path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no complete line"),
        (b"hello\n", "line 1"),
        (b'{"workflow":"w","state":{"history":[]},"version":99}\n', "another version: 99"),
        (b'{"workflow":"w","state":{"history":[]}}\n{"effect":1}\n', "line 2"),
        (
            b'{"workflow":"w","state":{"history":[]}}\n{"type":"done","outcome":{"type":"results","results":[]}}\n',
            "line 2",
        ),
    ],
)
def test_what_is_no_journal_is_refused_with_the_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=says):
        read_journal(path)
    with pytest.raises(JournalError, match="cannot read"):
        read_journal(tmp_path / "none.jsonl")


def test_a_journal_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot write the journal"):
        run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(tmp_path / "file" / "run.jsonl"))


def test_a_journal_is_its_owner_s_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    written = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    desk = Desk()
    with pytest.raises(JournalError, match=r"there is a file .* already"):
        run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    assert (path.read_bytes(), desk.log) == (written, [])


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file grows beyond that: what a full disk does to a journal."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_said_before_the_tool_runs_and_the_state_is_not_lost(tmp_path: Path) -> None:
    first = tmp_path / "first.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(first))
    lines = first.read_bytes().splitlines(keepends=True)
    begun = next(n for n, line in enumerate(lines) if b'"started"' in line and b'"write"' in line and b"call_" in line)
    desk = Desk()
    with room(sum(map(len, lines[: begun + 1])) - 30), pytest.raises(JournalError, match="free some space") as caught:
        run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(tmp_path / "run.jsonl"))
    assert desk.log == ["look a"]
    assert caught.value.state is not None
    assert_answered(caught.value.state.history)
    assert read_journal(tmp_path / "run.jsonl").pending is None, "half a line says nothing"


def test_a_saved_state_goes_on_elsewhere() -> None:
    """A halted run, saved as JSON, is resumed with a fresh budget and keeps what was done."""
    first = run_sync(Desk(max_iterations=2).workflow, "Go.", backend=Scripted(["Hm.", call("look", what="a")]))
    saved = msgspec.json.encode(first.failure().state)
    desk = Desk()
    state = msgspec.json.decode(saved, type=State)
    again = asyncio.run(
        resume(desk.workflow, state, backend=Scripted([call("finish", result="ok")]), budget=desk.workflow.budget)
    )
    assert again.unwrap().value == "ok"
    assert desk.log == ["finish"], "what was done is not done again"


scripts = st.lists(st.one_of(replies, st.just(Fault(kind="timeout", detail="too slow"))), min_size=12, max_size=12)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=scripts)
def test_async_sync_and_replay_agree_on_any_script(tmp_path: Path, script: list[Line]) -> None:
    path = tmp_path / "run.jsonl"
    path.unlink(missing_ok=True)  # of the last example
    in_sync = run_sync(Desk().workflow, "Go.", backend=Scripted(script), journal=str(path))
    in_async = asyncio.run(run(Desk().workflow, "Go.", backend=Scripted(script)))
    assert _timeless(in_sync) == _timeless(in_async)
    assert replayed(Desk(), path) == in_sync


def _timeless(result: Result[Finished, Halted]) -> object:
    match result:
        case Success(finished):
            return finished.outcome, finished.state.history
        case Failure(halted):
            return halted.halt, halted.state.history
        case _:
            raise AssertionError(result)
