"""The journal: a run is written down as it happens, and read back as the same run."""

import asyncio
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from returns.result import Failure, Result, Success

from forge import Context, Finished, Halted, Workflow, replay, run, run_sync, tool
from forge.errors import JournalError, as_error
from forge.interpreters.scripted import Line, Scripted, call
from forge.journal import states
from forge.journal.file import JournalFile
from forge.journal.records import LARGEST_JOURNAL, Header, read_journal
from forge.journal.replaying import DivergenceError
from forge.testing import assert_answered
from stages.effect import Execute, Fault
from stages.halt import JournalFailed
from stages.state import Awaiting, State
from tests.flows import Desk
from tests.journals import journal_of, room
from tests.property.machine import replies

HEADER = msgspec.json.encode(Header(workflow="w", state=State(history=())))
SCRIPT: list[Line] = ["Hm.", call("look", what="a"), call("write", what="a", text="t"), call("finish", result="ok")]


def test_a_replay_is_the_run_without_model_or_tools(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run.jsonl"
    first = run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    desk = Desk()
    assert replay(path, desk.workflow) == first
    assert desk.log == [], "no tool ran again"


def test_a_replay_with_another_workflow_says_where_it_parts(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    with pytest.raises(DivergenceError) as error:
        replay(path, Desk(context=Context(failed_attempts="collapse")).workflow)
    assert "effect 4 (the model call of turn 3) is not the recorded one" in str(error.value)
    assert error.value.found[0].path == "request.messages[2].content"
    other = dataclasses.replace(Desk().workflow, name="till", system_prompt="Count.")
    with pytest.raises(DivergenceError, match="\nThe journal is of the workflow desk, not till:\n"):
        replay(path, dataclasses.replace(other, tools=other.tools[::-1]))


def test_a_journal_that_ends_early_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n", len(whole) // 2) + 20])
    with pytest.raises(JournalError, match="the journal ends after"):
        replay(path, Desk().workflow)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty: .* nothing was done"),
        (b'{"journal":4,"work', "ends within its first line: .* nothing was done"),
        (b"hello", "is not a journal: it has no complete line"),
        (b"hello\n", "is not a journal: line 1"),
        (b"[" * 100_000 + b"\n", "is not a journal: line 1"),
        (b'{"workflow":"w","state":{"history":[]}}\n', "is not a journal: line 1 names no version"),
        (
            b'{"journal":99,"workflow":"w","state":{"history":[]}}\n',
            "another version of forge: 99, and this one reads 4",
        ),
        (HEADER + b"\n", "line 1: its checksum is wrong"),
        (journal_of(b'{"journal":4,"workflow":"w"}'), "missing required field `state`"),
        (journal_of(b'{"journal":4,"workflow":"w","state":{"history":[],"version":7}}'), "the state is of version 7"),
        (journal_of(HEADER, b'{"effect":1}'), "line 2"),
        (journal_of(HEADER, b'{"type":"done","outcome":{"type":"replied","reply":{}}}'), "line 2: it does not follow"),
        (journal_of(HEADER, b'{"type":"again"}'), "line 2: it does not follow"),
        (journal_of(HEADER, b'{"type":"started","effect":{"type":"send","turn":1,"keep":5}}'), "it keeps 5 messages"),
        (journal_of(HEADER, b'{"type":"done","outcome":' + b'{"a":' * 100_000 + b"}"), "line 2"),
    ],
)
def test_what_is_no_journal_is_refused_with_the_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=says):
        read_journal(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot read"):
        read_journal(tmp_path / "none.jsonl")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(JournalError, match="is not a file"):
            read_journal(path)


def test_a_journal_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match=r"cannot write the journal .*; write it elsewhere"):
        run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(tmp_path / "file" / "run.jsonl"))


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    desk = Desk()
    with pytest.raises(JournalError, match=r"is a folder; name a file in it for the journal, such as .*run\.jsonl"):
        run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(tmp_path))
    assert desk.log == []


def test_a_journal_is_its_owner_s_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    written = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    desk = Desk()
    with pytest.raises(JournalError, match=r"the file .* already exists"):
        run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    assert (path.read_bytes(), desk.log) == (written, [])


@pytest.mark.parametrize("size", [0, 300])
def test_a_disk_that_is_full_from_the_beginning_is_said_and_nothing_was_begun(tmp_path: Path, size: int) -> None:
    path, desk = tmp_path / "run.jsonl", Desk()
    with room(size), pytest.raises(JournalError, match="free some space, delete the file and start the run again"):
        run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    assert desk.log == []
    path.unlink()
    assert isinstance(run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path)), Success)


def test_a_full_disk_is_said_before_the_tool_runs_and_the_state_is_not_lost(tmp_path: Path) -> None:
    first = tmp_path / "first.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(first))
    lines = first.read_bytes().splitlines(keepends=True)
    begun = next(n for n, line in enumerate(lines) if b'"started"' in line and b'"write"' in line and b"call_" in line)
    desk = Desk()
    with room(sum(map(len, lines[: begun + 1])) - 30):
        result = run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(tmp_path / "run.jsonl"))
    run = result.failure()
    assert isinstance(run.halt, JournalFailed)
    assert "free some space" in run.halt.problem
    assert desk.log == ["look a"]
    assert_answered(run.state.history)
    assert read_journal(tmp_path / "run.jsonl").pending is None, "half a line says nothing"
    with pytest.raises(JournalError, match="free some space"):
        raise as_error(run.halt, run.state)


def test_a_result_that_the_disk_has_no_room_for_is_not_lost(tmp_path: Path) -> None:
    first = tmp_path / "first.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(first))
    lines = first.read_bytes().splitlines(keepends=True)
    written = next(n for n, line in enumerate(lines) if b'"written' in line)
    desk = Desk()
    with room(sum(map(len, lines[: written + 1])) - 30):
        result = run_sync(desk.workflow, "Go.", backend=Scripted(SCRIPT), journal=str(tmp_path / "run.jsonl"))
    state = result.failure().state
    assert desk.log == ["look a", "write a"]
    assert [done.name for done in state.ledger.successes] == ["look", "write"]
    assert state.ledger.in_doubt == ()
    pending = read_journal(tmp_path / "run.jsonl").pending
    assert isinstance(pending, Execute), "whoever goes on from the file alone does not know"


def delete(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_suffix(".old"))


def replace_(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"{}\n")


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize(
    ("meddle", "says"),
    [
        (delete, "was deleted or moved"),
        (move, "was deleted or moved"),
        (replace_, "was replaced by another file"),
        (append, "was changed by another program"),
        (shorten, "was changed by another program"),
    ],
)
def test_no_write_runs_once_another_program_has_changed_the_journal(
    tmp_path: Path, meddle: Callable[[Path], None], says: str
) -> None:
    path = tmp_path / "run.jsonl"
    paid: list[int] = []

    @tool(effect="read")
    def look() -> str:
        """Look something up; meanwhile somebody is at the journal."""
        meddle(path)
        return "7"

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    workflow = Workflow("till", tools=[look, pay], terminal_tool="pay")
    script: list[Line] = [call("look"), call("pay", amount=7)]
    run = run_sync(workflow, "Go.", backend=Scripted(script), journal=str(path)).failure()
    assert isinstance(run.halt, JournalFailed)
    assert says in run.halt.problem
    assert paid == []
    assert [done.name for done in run.state.ledger.successes] == ["look"], "what was done is known"


def test_a_journal_of_a_relative_path_is_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    @tool
    def leave() -> str:
        """Change the working directory."""
        monkeypatch.chdir(tmp_path / "elsewhere")
        return "left"

    workflow = Workflow("w", tools=[leave], terminal_tool="leave")
    run_sync(workflow, "Go.", backend=Scripted([call("leave")]), journal="run.jsonl").unwrap()
    assert read_journal(tmp_path / "run.jsonl").pending is None


def test_a_full_journal_ends_the_run_before_the_next_effect(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with JournalFile.new(path) as file:
        file.append(b"{}", room=LARGEST_JOURNAL - 100)
        with pytest.raises(JournalError, match=r"is full: .* and a journal has at most 2147483648"):
            file.append(b"{}", room=LARGEST_JOURNAL - 50)
    path.write_bytes(b"")
    os.truncate(path, LARGEST_JOURNAL + 1)  # a file with a hole takes no room
    with pytest.raises(JournalError, match="more than 2147483648 bytes"):
        read_journal(path)


scripts = st.lists(st.one_of(replies, st.just(Fault(kind="timeout", detail="too slow"))), min_size=12, max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=scripts)
def test_async_sync_and_replay_agree_on_any_script(tmp_path: Path, script: list[Line]) -> None:
    path = tmp_path / "run.jsonl"
    path.unlink(missing_ok=True)  # of the last example
    in_sync = run_sync(Desk().workflow, "Go.", backend=Scripted(script), journal=str(path))
    in_async = asyncio.run(run(Desk().workflow, "Go.", backend=Scripted(script)))
    assert _timeless(in_sync) == _timeless(in_async)
    assert replay(path, Desk().workflow) == in_sync


def _timeless(result: Result[Finished, Halted]) -> object:
    match result:
        case Success(finished):
            return finished.outcome, finished.state.history
        case Failure(halted):
            return halted.halt, halted.state.history
        case _:
            raise AssertionError(result)


def test_a_run_that_was_cut_short_ends_where_it_was(tmp_path: Path) -> None:
    """Cut after the line that a write is begun: its outcome is in doubt, and every state up to there is known."""
    path = tmp_path / "run.jsonl"
    run_sync(Desk().workflow, "Go.", backend=Scripted(SCRIPT), journal=str(path))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:10]))
    assert isinstance(read_journal(path).pending, Execute)
    *_, last = states(path, Desk().workflow)
    assert isinstance(last.state.phase, Awaiting)
    assert last.state.phase.effect == read_journal(path).pending
    with pytest.raises(JournalError, match="never finished: the call of write"):
        replay(path, Desk().workflow)


def test_what_a_run_was_set_up_for_is_in_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    answers = ['{"tool": "look", "args": {"what": "a"}}', '{"tool": "finish", "args": {}}']
    model = Scripted(answers, mode="constrained", context_tokens=4000)
    first = run_sync(Desk().workflow, "Go.", backend=model, journal=str(path))
    header = read_journal(path).header
    assert (header.workflow, header.setup.mode, header.setup.context_tokens) == ("desk", "constrained", 4000)
    assert header.forge
    assert replay(path, Desk().workflow) == first
