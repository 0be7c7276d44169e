"""`forge` in this process: what a process of its own would print and end with, without half a second of imports."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from forge.cli import main


def forge(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The command run in that folder: its exit code, and what it printed on standard output and standard error.

    For commands that read no terminal and are not interrupted. What the folder's own modules left in `sys.modules` and
    `sys.path` is taken out again.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    modules, path = {*sys.modules}, [*sys.path]
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([*words])
            except SystemExit as ended:  # argparse ends so
                code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.path[:] = path
        for name in {*sys.modules} - modules:
            if (file := getattr(sys.modules[name], "__file__", None)) and Path(file).is_relative_to(folder):
                del sys.modules[name]
    printed = []
    for stream in (out, err):
        stream.seek(0)
        printed.append(stream.read().replace(os.linesep, "\n"))
    return subprocess.CompletedProcess(["forge", *words], code, *printed)
