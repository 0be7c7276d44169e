"""No regular expression that reads a model's text takes more than linear time: judged by its form, not timed."""

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

import stages
from stages.rescue import FAMILIES
from stages.rescue.markers import openers
from tests.backtracking import is_linear


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(stages.__path__, "stages."):
        yield import_module(module.name)


SENTENCES = ("context",)
"""Modules of rescue that search a sentence of bounded length."""
EXEMPT = {
    ("stages.decoding", "_STRING"): "matches from every quotation mark on, and the search goes on where it ended",
    ("stages.decoding", "_ESCAPED"): "matches from every backslash on, and the search goes on where it ended",
    ("stages.repair.strings", "_LOST"): "looks at what follows each of at most 2,000 characters, once a string",
    ("stages.rescue.names", "_CUT"): "searches the last 80 characters of a text",
    ("stages.rescue.patterns", "_PIECE"): "reads the openers of families, not texts",
    ("stages.rescue.families.harmony", "_START_BEFORE"): "searches the last 60 characters before a place",
}


def _patterns() -> Iterator[tuple[str, re.Pattern[str], bool]]:
    """Each compiled pattern of the core with its name, and whether it is searched for."""
    for module in _modules():
        if module.__name__.removeprefix("stages.rescue.") in SENTENCES:
            continue
        searched = {
            node.func.value.id
            for node in ast.walk(ast.parse(inspect.getsource(module)))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if isinstance(node.func.value, ast.Name) and node.func.attr not in ("match", "fullmatch")
        }
        for name, pattern in vars(module).items():
            if isinstance(pattern, re.Pattern) and (module.__name__, name) not in EXEMPT:
                yield f"{module.__name__}.{name}", pattern, name in searched
    known = openers(FAMILIES)
    yield "the openers of all families", known.anywhere, True
    yield from ((f"the opener of {family.name}", re.compile(family.opener), False) for family in FAMILIES)


def test_no_regular_expression_takes_more_than_linear_time() -> None:
    different = {(pattern, search): name for name, pattern, search in _patterns()}
    assert [name for (pattern, search), name in different.items() if not is_linear(pattern, search=search)] == []


@pytest.mark.parametrize(
    ("pattern", "search", "linear"),
    [
        (r"\s*(?=\{)", False, True),
        (r"\s*:?\s*x", False, False),
        (r"\s*+:?\s*+x", False, True),
        (r"(?:a+)+b", False, False),
        (r"a*(?=[ab]*c)", False, False),
        (r"<[^>]*>", True, False),
        (r"<[^<>]*>", True, True),
        (r"\s+x", True, False),
        (r"\s+", True, True),
        (r"[ab]{1,90}?[ \t]*[a ]*x", False, False),
        (r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', False, True),
    ],
)
def test_a_regular_expression_that_backtracks_is_known_by_its_form(pattern: str, *, search: bool, linear: bool) -> None:
    assert is_linear(re.compile(pattern), search=search) is linear
