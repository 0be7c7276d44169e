"""What `forge.evals` exports: no name that another room has for something else."""

import ast
from pathlib import Path

import forge.evals

ROOT = Path(__file__).parents[2]


def defined(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return {name}
        case ast.Assign(targets=[ast.Name(id=name)]):
            return {name}
        case _:
            return set()


def test_each_exported_name_is_defined_once_in_the_whole_project() -> None:
    files = [file for folder in ("forge", "stages") for file in (ROOT / folder).rglob("*.py")]
    names = [name for file in files for statement in ast.parse(file.read_text()).body for name in defined(statement)]
    assert {name: names.count(name) for name in forge.evals.__all__} == dict.fromkeys(forge.evals.__all__, 1)
