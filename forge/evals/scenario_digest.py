"""The digest of a scenario: a hash of its code with texts, tools and checks, to detect changes."""

import ast
import hashlib
from collections.abc import Iterator
from copy import copy
from functools import cache, partial
from pathlib import Path
from types import FunctionType

import msgspec

from forge.evals.scenario import Scenario

_PLAIN = str | int | float | bool | None


def scenario_digest(scenario: Scenario) -> str:
    """A hash of the code that makes the scenario's worlds, with texts, tools and checks; empty without source.

    Includes what it uses from files in its folder. Excludes comments and layout, the decorators of the world function,
    code of forge and other packages, and files read at run time.
    """
    code = tuple(_code(scenario.world))
    if not code:
        return ""
    return hashlib.blake2b(msgspec.json.encode((scenario.context_tokens, code)), digest_size=8).hexdigest()


def _code(function: object) -> Iterator[str]:
    """Bound arguments of the function, and its code."""
    while isinstance(function, partial):
        yield from (repr(value) for value in function.args if isinstance(value, _PLAIN))
        yield from (f"{name}={value!r}" for name, value in function.keywords.items() if isinstance(value, _PLAIN))
        function = function.func
    if isinstance(function, FunctionType):
        yield from _reached(Path(function.__code__.co_filename), function.__qualname__.partition(".")[0])


@cache
def _reached(file: Path, name: str) -> tuple[str, ...]:
    """The top-level statement that defines the name, and everything that it uses from this file and its folder."""
    found: set[str] = set()
    waiting = [(file, name)]
    while waiting:
        file, name = waiting.pop()
        for statement in _statements(file):
            if name not in _made(statement):
                continue
            if isinstance(statement, ast.ImportFrom):
                waiting += _imported(file, statement, name)
                continue
            if isinstance(statement, ast.FunctionDef) and not found:  # the function that makes the world
                statement = copy(statement)  # noqa: PLW2901
                statement.decorator_list = []
            if (text := ast.unparse(statement)) not in found:
                found.add(text)
                waiting += [(file, node.id) for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return tuple(sorted(found))


@cache
def _statements(file: Path) -> tuple[ast.stmt, ...]:
    """The top-level statements of the file; none if it cannot be read, such as interactive input."""
    try:
        return tuple(ast.parse(file.read_bytes()).body)
    except (OSError, SyntaxError, ValueError):
        return ()


def _made(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return frozenset({name})
        case ast.ImportFrom(names=names):
            return frozenset(one.asname or one.name for one in names)
        case _:
            written = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            return frozenset(node.id for node in written if isinstance(node.ctx, ast.Store))


def _imported(file: Path, statement: ast.ImportFrom, name: str) -> Iterator[tuple[Path, str]]:
    """Where the imported name is defined, if in a file of the same folder."""
    beside = file.with_name(f"{(statement.module or '').rpartition('.')[2]}.py")
    yield from ((beside, one.name) for one in statement.names if name == (one.asname or one.name))
