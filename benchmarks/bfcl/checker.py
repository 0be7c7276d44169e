"""BFCL's own checker, in a process of its own."""

import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from benchmarks.bfcl.child_program import SimulatedCall
from forge.errors import ForgeError

# Questions to BFCL's own code, each in a process of its own, which the operating system bounds.

_SECONDS = 60.0
"""What the process is given by the clock, on a busy machine; it bounds its processor time itself, to less."""


def _ask_child(package: Path, kind: Literal["prompt", "calls", "result", "conversation"], **question: object) -> str:
    """The answer of that kind; the members of the question are the parameters of its function in child_program.py.

    ForgeError if it takes too long or too much memory.
    """
    # -I: nothing of the user's environment is imported in place of the package
    command = [sys.executable, "-I", str(Path(__file__).with_name("child_program.py")), str(package.parent)]
    run = partial(subprocess.run, capture_output=True, text=True, timeout=_SECONDS, check=True)
    try:
        return str(json.loads(run(command, input=json.dumps({"kind": kind, **question})).stdout))
    except subprocess.TimeoutExpired:
        raise ForgeError(f"BFCL's code was stopped after {_SECONDS:g} s") from None
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:
            raise ForgeError(f"BFCL's code was stopped by signal {-error.returncode}") from None
        said = error.stderr.strip()[-300:]
        raise ForgeError(f"BFCL's code ended with exit code {error.returncode}: {said}") from None


# BFCL's own checkers, and the functions that its conversations simulate.

_Object = Mapping[str, object]


class Checker(Struct, frozen=True):
    """The checker of the package in that folder, for questions of one turn."""

    package: Path

    def wrong(self, category: str, functions: Sequence[_Object], calls: Sequence[_Object], answer: object) -> str:
        """What is wrong with the calls, each `{name: arguments}`; empty: nothing."""
        return _ask_child(self.package, "calls", category=category, functions=functions, calls=calls, answer=answer)

    def prompt(self, functions: Sequence[_Object]) -> str:
        """The system prompt by which BFCL asks a model that has no tool calls of its own."""
        return _ask_child(self.package, "prompt", functions=functions)


class Simulation(Struct, frozen=True, kw_only=True):
    """A conversation's simulated classes. `entry` is it as the package has it, `names` are the functions offered.

    It holds no state: each time a new process makes all calls so far again, which takes no longer than its start.
    """

    package: Path
    entry: Mapping[str, Any]
    names: tuple[str, ...]

    def last_result(self, calls: Sequence[SimulatedCall]) -> str:
        """What the last of these calls returns, as text. ForgeError if it takes too long, or too much memory."""
        return _ask_child(self.package, "result", entry=self.entry, names=self.names, calls=calls)

    def wrong(self, turns: Sequence[Sequence[SimulatedCall]], answer: object) -> str:
        """What is wrong with the calls for each message; empty: nothing."""
        return _ask_child(self.package, "conversation", entry=self.entry, names=self.names, turns=turns, answer=answer)


# Calls written as Python, as BFCL's prompt asks for them: read as values, never run.


def python_calls(text: str) -> list[tuple[str, str]]:
    """The calls of `[f(a=1), g(b="x")]`, arguments as JSON; none where the text is anything else."""
    try:
        tree = ast.parse(text.strip().strip("`").strip(), mode="eval").body
        listed = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return [_python_call(one) for one in listed]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []


def _python_call(node: ast.expr) -> tuple[str, str]:
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("no call by name")
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    return ast.unparse(node.func).replace(".", "_"), msgspec.json.encode(arguments).decode()
