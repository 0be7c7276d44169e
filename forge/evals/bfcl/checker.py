"""BFCL's own checker, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from forge.errors import ForgeError

_Function = Mapping[str, object]


class Checker:
    """Asks the checker of the package in that folder; a context, for as long as its process runs."""

    def __init__(self, package: Path) -> None:
        program = Path(__file__).with_name("checker_program.py")
        # -I: nothing of the user's environment is imported in place of the package
        command = [sys.executable, "-I", str(program), str(package.parent)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def __enter__(self) -> Self:
        """The checker."""
        return self

    def __exit__(self, *_: object) -> None:
        """End its process."""
        self._process.terminate()
        self._process.communicate()

    def wrong(
        self,
        category: str,
        functions: Sequence[_Function],
        calls: Sequence[Mapping[str, object]],
        answer: object,
    ) -> str:
        """What is wrong with the calls, each `{name: arguments}`; empty: nothing."""
        return self._ask({"category": category, "functions": functions, "calls": calls, "answer": answer})

    def prompt(self, functions: Sequence[_Function]) -> str:
        """The system prompt by which BFCL asks a model that has no tool calls of its own."""
        return self._ask({"category": "prompt", "functions": functions})

    def _ask(self, question: Mapping[str, object]) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise TypeError("the checker's process has no pipes")
        try:
            stdin.write(json.dumps(question) + "\n")
            stdin.flush()
            return str(json.loads(stdout.readline()))
        except (OSError, ValueError):
            raise ForgeError("the checker of bfcl-eval ended; what it printed is above") from None
