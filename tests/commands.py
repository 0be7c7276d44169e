"""`forge` in this process: what a process of its own would print and end with, without half a second of imports."""

import contextlib
import io
import linecache
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from forge.cli import main


def forge(
    *words: str, cwd: Path | str = ".", answers: str = "", output: str = "pipe", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """The command run in that folder: its exit code, and what it printed on standard output and standard error.

    `answers` is what stands on standard input; `output` is a `pipe` or a `terminal`. For commands that read from no
    terminal and are not interrupted. What would be a traceback on standard error is raised.
    """
    folder = Path(cwd).resolve()
    kind = _Terminal if output == "terminal" else io.TextIOWrapper
    out, err = (kind(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    apart = _as_its_own_process(folder, answers, environment)
    with apart, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([*words])
        except SystemExit as ended:  # argparse ends so
            code = ended.code if isinstance(ended.code, int) else 1
    printed = []
    for stream in (out, err):
        stream.seek(0)
        printed.append(stream.read())
    return subprocess.CompletedProcess(["forge", *words], code, *printed)


def until(process: "subprocess.Popen[str]", words: str) -> None:
    """Read what the process prints up to a line with those words."""
    assert process.stdout is not None
    for line in iter(process.stdout.readline, ""):
        if words in line:
            return
    raise AssertionError(f"it ended without {words!r}")


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def _as_its_own_process(folder: Path, answers: str, environment: dict[str, str]) -> Iterator[None]:
    """Standard input, environment, folder and imports as for a new process, and put back as they were."""
    before, path, modules, stdin = {**os.environ}, [*sys.path], {*sys.modules}, sys.stdin
    read, write = os.pipe()
    os.write(write, answers.encode())  # a pipe holds 64 kB
    os.close(write)
    os.environ.update(environment)
    try:
        with contextlib.chdir(folder), os.fdopen(read, encoding="utf-8") as sys.stdin:
            yield
    finally:
        sys.stdin, sys.path[:] = stdin, path
        os.environ.clear()
        os.environ.update(before)
        for name in {*sys.modules} - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file and not (folder / file).is_relative_to(sys.prefix) and not name.startswith(("forge.", "stages.")):
                del sys.modules[name]  # a user's file: the next command may find another of that name
        linecache.clearcache()
