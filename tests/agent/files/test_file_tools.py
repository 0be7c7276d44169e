"""The tools of a folder, as a model uses them: reads run, writes and commands ask first, refusals say what to do."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import get_args

import pytest
from returns.result import Failure

from forge import Limits, Workflow, run_sync, tool
from forge.agent import file_tools
from forge.agent.files.root import LARGEST
from forge.errors import DefinitionError
from forge.interpreters.scripted import Line, Scripted, call, calls
from forge.outcome import Finished, Halted
from forge.tools import Tool
from forge.workflow.workflow import Workflow as AnyWorkflow
from stages.effect import Ask, Rejected
from stages.halt import ApprovalNeeded
from stages.message import Tool as ToolMessage
from stages.tool import ToolEffect
from tests.flows import approve

CALC = "def add(a, b):\n    return a - b\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "calc.py").write_text(CALC)
    (tmp_path / "README.md").write_text("Adds numbers.\n")
    return tmp_path


@tool(effect="terminal")
def finish() -> str:
    """Finish."""
    return "done"


def workflow(folder: Path, **options: object) -> AnyWorkflow:
    tools = file_tools(folder, **options)  # type: ignore[arg-type]
    return Workflow("files", tools=[*tools, finish], terminal_tool="finish", limits=Limits(max_iterations=30))


def answers(ended: Finished | Halted) -> list[str]:
    return [message.text for message in ended.state.history if isinstance(message, ToolMessage)]


def told(folder: Path, *script: Line, **options: object) -> list[str]:
    """What the model is told of the calls, with everything approved."""

    model = Scripted([*script, call("finish")])
    return answers(run_sync(workflow(folder, **options), "Work.", backend=model, ask=approve).unwrap())


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("path", [".", "", "src/.."])
def test_the_folder_itself_is_no_file_to_write(folder: Path, path: str, *, overwrite: bool) -> None:
    said = told(folder, call("write_file", path=path, content="x"), overwrite=overwrite)
    assert "that is the folder itself, not a file; list_files shows what is in it" in said[0]


@pytest.mark.parametrize("old", [b"caf\xe9\n", b"a\0b", b"x" * (LARGEST + 1)], ids=["latin-1", "binary", "large"])
def test_what_cannot_be_read_can_be_replaced(folder: Path, old: bytes) -> None:
    (folder / "old").write_bytes(old)
    said = told(folder, call("write_file", path="old", content="new\n"))
    assert said[:1] == ["old has 1 line now; before it had no readable text"]
    assert (folder / "old").read_text() == "new\n"


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (signal.SIGRTMIN + 1, str(signal.SIGRTMIN + 1))])
def test_a_command_that_a_signal_ended(folder: Path, number: int, name: str) -> None:
    said = told(folder, call("run_command", command=["sh", "-c", f"kill -{number} $$"]))
    assert said[:1] == [f"the command was ended by the signal {name}, without any output"]


def specs(folder: Path, **options: object) -> dict[str, tuple[ToolEffect, bool]]:
    made = file_tools(folder, **options)  # type: ignore[arg-type]
    return {one.name: (one.spec.effect, one.spec.approval) for one in made if isinstance(one, Tool)}


def test_what_changes_something_asks_first(folder: Path) -> None:
    reads = dict.fromkeys(("read_file", "list_files", "search_files"), ("read", False))
    writes = dict.fromkeys(("write_file", "edit_file"), ("write", True))
    commands = {"run_command": ("write", True), "read_output": ("read", False)}
    assert specs(folder) == {**reads, **writes, **commands}
    assert specs(folder, write=False, commands=False) == reads
    assert {asks for _, asks in specs(folder, approval=False).values()} == {False}
    assert {effect for effect, _ in specs(folder).values()} <= {*get_args(ToolEffect)}


READ = call("read_file", path="src/calc.py")
WRITES = [
    call("write_file", path="src/calc.py", content="x"),
    call("edit_file", path="src/calc.py", old_snippet="a - b", new_snippet="a + b"),
    call("run_command", command=[sys.executable, "-c", "open('made', 'w')"]),
]


@pytest.mark.parametrize("line", WRITES, ids=["write", "edit", "run"])
def test_with_nobody_to_ask_nothing_is_changed(folder: Path, line: Line) -> None:
    before = sorted(folder.rglob("*"))
    ended = run_sync(workflow(folder), "Work.", backend=Scripted([READ, line]))
    assert isinstance(ended, Failure)
    assert isinstance(ended.failure().halt, ApprovalNeeded)
    assert (folder / "src" / "calc.py").read_text() == CALC
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("line", WRITES, ids=["write", "edit", "run"])
def test_what_a_person_refuses_is_not_done(folder: Path, line: Line) -> None:
    asked: list[Ask] = []

    async def refuse(question: Ask) -> Rejected:
        asked.append(question)
        return Rejected(digest=question.digest, reason="not today")

    ended = run_sync(workflow(folder), "Work.", backend=Scripted([READ, line, call("finish")]), ask=refuse).unwrap()
    assert "not today" in answers(ended)[1]
    assert len(asked) == 1
    assert (folder / "src" / "calc.py").read_text() == CALC
    assert not (folder / "made").exists()


def test_a_bug_is_found_and_mended(folder: Path) -> None:
    check = [sys.executable, "-c", "import sys; sys.path.insert(0, 'src'); import calc; assert calc.add(1, 2) == 3"]
    found = told(
        folder,
        call("list_files"),
        call("search_files", text="A - B", ignore_case=True),
        call("read_file", path="src/calc.py"),
        call("edit_file", path="src/calc.py", old_snippet="return a - b", new_snippet="return a + b"),
        call("run_command", command=check),
        call("write_file", path="docs/notes.md", content="mended\n"),
    )
    assert found[:4] == [
        "README.md\nsrc/\nsrc/calc.py",
        "src/calc.py:2: return a - b",
        "src/calc.py, lines 1 to 2 of 2:\n1 | def add(a, b):\n2 |     return a - b",
        "Done. The place in src/calc.py is now:\n1 | def add(a, b):\n2 |     return a + b",
    ]
    assert found[4].startswith("exit code 0 (success)")
    assert found[5] == "docs/notes.md is new: 1 line"
    assert (folder / "src" / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (call("read_file", path="calc.py"), "there is no file calc.py. Did you mean src/calc.py?"),
        (call("read_file", path="src/calk.py"), "there is no file src/calk.py. Did you mean src/calc.py?"),
        (call("read_file", path="add"), "there is no file add. The files are: README.md, src/calc.py."),
        (call("read_file", path="/etc/passwd"), "/etc/passwd is outside the folder that you may work in"),
        (call("edit_file", path="src/calc.py", old_snippet="a * b", new_snippet="x"), "The nearest lines are:"),
        (call("write_file", path="../out", content="x"), "../out is outside the folder"),
        (call("list_files", folder="../"), "../ is outside the folder"),
        (call("search_files", text="root", folder="/etc"), "/etc is outside the folder"),
        (call("search_files", text="a\nb"), "give a text within one line"),
        (call("run_command", command=["nothing-of-that-name"]), "there is no program"),
    ],
)
def test_a_refusal_says_how_to_go_on_and_is_no_counted_error(folder: Path, line: Line, said: str) -> None:
    found = told(folder, READ, line)[1]
    assert found.startswith("[ToolResolutionError]")
    assert said in found


def test_no_output_is_read_before_a_command_ran(folder: Path) -> None:
    assert told(folder, call("read_output", number=1))[0].startswith("[PrereqError")


def test_an_output_that_is_not_there_is_said(folder: Path) -> None:
    found = told(folder, call("run_command", command=[sys.executable, "-V"]), call("read_output", number=7))
    assert "there is no output 7 any more; there are: 1" in found[1]


def test_a_long_file_is_read_in_pieces(folder: Path) -> None:
    (folder / "long").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    found = told(
        folder,
        call("read_file", path="long"),
        call("read_file", path="long", first_line=92),
        call("read_file", path="long", first_line=101),
        shown_chars=120,
    )
    assert found[0].startswith("long, lines 1 to 10 of 100:\n1 | line 1\n")
    assert found[0].endswith("\n10 | line 10\n[more: read_file with first_line=11]")
    assert found[1].endswith("99 | line 99\n100 | line 100")
    assert found[2] == found[0], "there is no line 101: it begins anew"


def test_the_end_of_a_long_output_is_shown_and_the_rest_can_be_read(folder: Path) -> None:
    command = [sys.executable, "-c", "for n in range(1, 1001): print('line', n)"]
    found = told(
        folder,
        call("run_command", command=command),
        call("read_output", number=1, first_line=500),
        shown_chars=600,
    )
    assert found[0].startswith("exit code 0 (success). This is the end of its output, lines 935 to 1000; the rest")
    assert found[0].endswith("line 999\nline 1000")
    assert found[1].startswith("output 1, lines 500 to 539 of 1000:\n500 | line 500\n")


def test_a_search_and_a_list_of_a_large_folder_are_bounded(folder: Path) -> None:
    for n in range(300):
        (folder / f"file{n:03}").write_text("needle\n")
    listed, found, _ = told(folder, call("list_files"), call("search_files", text="needle"))
    assert listed.splitlines()[-1] == "[more than 200; name a folder to list what is in it]"
    assert len(listed.splitlines()) == 201
    assert found.splitlines()[-1] == "[more than 50 lines; search for a longer text or in one folder]"
    assert len(found.splitlines()) == 51


def test_folders_of_machinery_are_named_and_links_and_pipes_are_not_entered(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("needle\n")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    listed, found, asked_for = told(
        folder, call("list_files"), call("search_files", text="needle"), call("list_files", folder=".git")
    )[:3]
    others = "(a link, a pipe or a device)"
    assert listed == f".git/ (not shown)\nREADME.md\npipe {others}\nsrc/\nup {others}\nsrc/calc.py"
    assert found == "no line contains 'needle'"
    assert asked_for == ".git/config"


def test_reads_of_one_reply_run_together_and_writes_one_by_one(folder: Path) -> None:
    both = calls(
        ("edit_file", {"path": "README.md", "old_snippet": "Adds", "new_snippet": "Sums"}),
        ("edit_file", {"path": "README.md", "old_snippet": "Sums", "new_snippet": "Totals"}),
    )
    told(folder, call("read_file", path="README.md"), both)
    assert (folder / "README.md").read_text() == "Totals numbers.\n"


@pytest.mark.parametrize("wrong", [{"timeout": 0.0}, {"timeout": -1.0}, {"shown_chars": 0}])
def test_limits_that_are_none_are_refused(folder: Path, wrong: dict[str, float]) -> None:
    with pytest.raises(DefinitionError, match="it must be a"):
        file_tools(folder, **wrong)  # type: ignore[arg-type]


def test_two_sets_of_tools_do_not_share_their_outputs(folder: Path) -> None:
    one, other = ({t.name: t for t in file_tools(folder) if isinstance(t, Tool)} for _ in range(2))
    asyncio.run(one["run_command"](["echo", "hello"]))
    assert one["read_output"](1) == "output 1, lines 1 to 1 of 1:\n1 | hello"
    with pytest.raises(Exception, match="there is no output 1"):
        other["read_output"](1)


def test_whole_files_are_only_recommended_where_they_may_be_replaced(tmp_path: Path) -> None:
    def told(*, overwrite: bool) -> str:
        tools = file_tools(tmp_path, overwrite=overwrite)
        return " ".join(one.spec.description for one in tools if isinstance(one, Tool))

    assert "in place of what was in it" in told(overwrite=True)
    assert "in place of what was in it" not in told(overwrite=False)
    assert "Write a new file." in told(overwrite=False)
