"""TaskLimits: what a task does not name is refused before it runs, whatever came before and however it is written."""

import posixpath
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.agent.headless.limits import (
    Bounds,
    CommandForbidden,
    FileForbidden,
    TaskLimits,
    ToolForbidden,
    TooManyFiles,
    TooManyLines,
    Violation,
    changes_of,
    covers,
    limits_guard,
    violations,
)
from forge.testing import assert_guard_laws
from stages.message import ToolCall
from stages.tool import ToolEffect
from tests.counted import calls_of

EFFECTS: dict[str, ToolEffect] = {
    "read_file": "read",
    "write_file": "write",
    "edit_file": "write",
    "run_command": "write",
    "deploy": "write",
    "task_completion": "terminal",
}


def bounds(**limits: object) -> Bounds:
    return Bounds(limits=msgspec.convert(limits, TaskLimits), root="/work/repo", effects=EFFECTS)


def made(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id="call_000000001", name=name, arguments=msgspec.json.encode(arguments).decode())


def write(path: str, content: str = "x\n") -> ToolCall:
    return made("write_file", path=path, content=content)


def edit(path: str, old: str, new: str) -> ToolCall:
    return made("edit_file", path=path, old_snippet=old, new_snippet=new)


def found(limits: Bounds, call: ToolCall, *before: ToolCall) -> Violation | None:
    wrong = violations(limits, [(one.name, one.arguments) for one in before], [call])
    return wrong[0][1] if wrong else None


SRC = {"write": ["src/**"], "never_write": ["src/secret", "*.lock"]}


@pytest.mark.parametrize(
    ("limits", "call", "violation"),
    [
        ({}, made("read_file", path="x"), None),
        ({}, made("task_completion", result="x"), None),
        ({"tools": ["deploy"]}, made("task_completion", result="x"), None),
        ({"tools": ["deploy"]}, made("read_file", path="x"), ToolForbidden(tool="read_file")),
        ({"tools": ["deploy"]}, made("deploy"), None),
        ({}, made("deploy"), ToolForbidden(tool="deploy")),
        ({}, write("src/a"), FileForbidden(tool="write_file", path="src/a", why="not_named")),
        (SRC, write("src/a"), None),
        (SRC, write("/work/repo/src/a"), None),
        (SRC, write("./src/../src//a"), None),
        (SRC, write("tests/a"), FileForbidden(tool="write_file", path="tests/a", why="not_named")),
        (SRC, write("src/../tests/a"), FileForbidden(tool="write_file", path="src/../tests/a", why="not_named")),
        (SRC, write("../src/a"), FileForbidden(tool="write_file", path="../src/a", why="outside")),
        (SRC, write("a/" * 500_000), FileForbidden(tool="write_file", path="a/" * 149 + "a…", why="outside")),
        (SRC, write("/etc/passwd"), FileForbidden(tool="write_file", path="/etc/passwd", why="outside")),
        (SRC, write("/work/repo2/src/a"), FileForbidden(tool="write_file", path="/work/repo2/src/a", why="outside")),
        (SRC, edit("src/secret/k", "a", "b"), FileForbidden(tool="edit_file", path="src/secret/k", why="never")),
        (SRC, edit("src/SECRET/k", "a", "b"), FileForbidden(tool="edit_file", path="src/SECRET/k", why="never")),
        (SRC, write("src/a/uv.lock"), FileForbidden(tool="write_file", path="src/a/uv.lock", why="never")),
        ({}, made("run_command", command=["ls"]), CommandForbidden(command=("ls",))),
        ({"commands": [["ls"]]}, made("run_command", command=["ls"]), None),
        ({"commands": [["ls"]]}, made("run_command", command=["ls", "/"]), CommandForbidden(command=("ls", "/"))),
        ({"commands": [["ls", "*"]]}, made("run_command", command=["ls", "/", "-l"]), None),
        ({"commands": [["ls", "*"]]}, made("run_command", command=["ls"]), None),
        ({"commands": [["ls", "*"]]}, made("run_command", command=["lsof"]), CommandForbidden(command=("lsof",))),
        ({"commands": [["ls", "*"]]}, made("run_command", command=[" ls"]), CommandForbidden(command=(" ls",))),
    ],
)
def test_what_is_not_named_is_refused(limits: dict[str, object], call: ToolCall, violation: Violation | None) -> None:
    assert found(bounds(**limits), call) == violation


def test_the_maximum_of_files_counts_each_file_once_however_it_is_written() -> None:
    limits = bounds(write=["**"], max_files=2)
    before = (write("a"), edit("./a", "x", "y"), write("/work/repo/b"))
    assert found(limits, edit("b", "x", "z"), *before) is None
    assert found(limits, write("c"), *before) == TooManyFiles(path="c", max_files=2)


def test_the_maximum_of_lines_counts_what_is_added_and_what_is_taken_away() -> None:
    limits = bounds(write=["**"], max_lines=5)
    before = (edit("a", "one\ntwo\nthree", "one\n2\nthree"), write("b", "x\n"))  # 2 + 1
    assert found(limits, write("c", "x\ny\n"), *before) is None
    assert found(limits, write("c", "x\ny\nz\n"), *before) == TooManyLines(path="c", lines=3, before=3, max_lines=5)


def test_the_calls_of_one_reply_count_one_after_the_other() -> None:
    limits = bounds(write=["**"], max_files=1)
    calls = [write("a"), write("b"), write("a")]
    assert [(call, wrong) for call, wrong in violations(limits, [], calls)] == [
        (calls[1], TooManyFiles(path="b", max_files=1))
    ]


names = st.sampled_from(["src", "tests", "a", "..", ".", "", "b.py"])


@given(
    st.lists(names, max_size=6),
    st.lists(st.sampled_from(["src", "*", "**", "a", "*.py", "tests"]), min_size=1, max_size=4),
)
def test_no_spelling_of_a_path_gets_round_a_pattern(steps: list[str], pattern: list[str]) -> None:
    """A path that leads to a file is judged as the plain name of that file is."""
    limits = bounds(write=["/".join(pattern)])
    written = "/".join(("src", *steps))
    plain = posixpath.normpath(written)
    one, other = found(limits, write(written)), found(limits, write(plain))
    assert (one is None) == (other is None)
    if one is None:
        assert not plain.startswith("..")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=8), st.integers(1, 6), st.integers(1, 3))
def test_what_passes_the_guard_one_by_one_stays_within_the_limits(
    wanted: list[tuple[str, int]], max_lines: int, max_files: int
) -> None:
    limits = bounds(write=["**"], max_lines=max_lines, max_files=max_files)
    done: list[ToolCall] = []
    for path, lines in wanted:
        call = write(path, "x\n" * lines)
        if found(limits, call, *done) is None:
            done.append(call)
    total = changes_of([(one.name, one.arguments) for one in done], "/work/repo")
    assert total.lines <= max_lines
    assert len(total.files) <= max_files


def test_the_guard_keeps_the_laws_of_guards() -> None:
    edits = st.builds(
        lambda path, new: edit(path, "x", new).arguments, st.sampled_from(["src/a", "b"]), st.sampled_from("xyz")
    )
    assert_guard_laws(limits_guard(bounds(**SRC, max_lines=3)), tools=("edit_file",), arguments=edits, max_examples=30)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**", "src/a", True),
        ("src/**", "src2/a", False),
        ("src", "src/a/b", True),
        ("src", "other/src/b", True),
        ("src/", "src/b", True),
        ("./src/a", "src/a", True),
        ("src/a", "x/src/a", False),
        ("**", "anything/at/all", True),
        ("*", "anything/at/all", True),
        ("**/tests/**", "tests/a", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/c", False),
    ],
)
def test_patterns_are_read_as_in_a_gitignore(pattern: str, path: str, *, fits: bool) -> None:
    assert covers(pattern, tuple(path.split("/"))) is fits


def test_twice_the_stars_are_twice_the_work() -> None:
    few, many = (calls_of(partial(covers, "**/" * number + "x", ("a",) * 20)) for number in (50, 100))
    assert many < 2.5 * few


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    assert not covers("/".join(["**", "*a*a*a*"] * 30), tuple(["a" * 200] * 29 + ["b"]))
