"""Definitions that lead to themselves before any value is read."""

import pytest

from stages.schema.projection import self_referring
from stages.schema.value import Json


def ref(name: str) -> dict[str, Json]:
    return {"$ref": f"#/$defs/{name}"}


@pytest.mark.parametrize(
    ("definitions", "names"),
    [
        ({"A": ref("A")}, ["A"]),
        ({"A": ref("B"), "B": ref("A"), "C": ref("A")}, ["A", "B"]),
        ({"A": {"anyOf": [{"type": "null"}, ref("A")]}}, ["A"]),
        ({"A": {"type": "array", "items": ref("A")}}, []),
        ({"A": {"properties": {"child": ref("A")}}}, []),
        ({"A": ref("B"), "B": {"type": "string"}}, []),
        ({"A": True}, []),
    ],
)
def test_which(definitions: dict[str, Json], names: list[str]) -> None:
    assert self_referring(definitions) == names
