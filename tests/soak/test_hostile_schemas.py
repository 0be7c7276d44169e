"""Processor time of the hostile schemas, one by one; with `-s` the table is printed."""

import json
import time
from collections.abc import Callable

import pytest

from stages.schema import Fits, Misfit, checker, project
from tests.hostile_schemas import Hostile, hostile_schemas
from tests.stages.schema.judging.test_judging import TREE, processor_time, written

MOST = 0.05
"""Seconds of processor time for a call."""

LARGE = {
    "arguments of 100 kB": 2.0,
    "2,000 objects, enum of 2,000": 0.2,
    "5,000 values, enum of 5,000": 0.2,
    "prefixItems": 0.1,
    "200 alternatives of objects": 0.4,
    "5,000 alternatives for 200": 0.4,
}
"""Where schema and arguments are both large, the time is bounded by their product."""


def least(function: Callable[[], object]) -> float:
    """The seconds of processor time that it takes, the least of three times."""
    return min(processor_time(function) for _ in range(3))


@pytest.mark.parametrize("name", [*LARGE, ""], ids=lambda name: name or "all others")
def test_a_call_costs_at_most_so_much(name: str) -> None:
    for hostile in hostile_schemas():
        if hostile.name == name or (not name and hostile.name not in LARGE):
            costs_at_most_so_much(hostile)


def costs_at_most_so_much(hostile: Hostile) -> None:
    schema, arguments = json.dumps(hostile.schema).encode(), json.dumps(hostile.arguments)
    check = checker(schema)
    used = {
        "compile": least(lambda: checker(schema)),
        "check": least(lambda: check(arguments)),
        "llama.cpp": least(lambda: project(schema, "llama.cpp")),
        "strict": least(lambda: project(schema, "openai-strict")),
    }
    shown = ", ".join(f"{name} {seconds * 1000:.1f}" for name, seconds in used.items())
    print(f"{hostile.name}: {len(schema)} and {len(arguments)} characters, {shown} ms")
    assert isinstance(check(arguments), Fits | Misfit)
    assert used["check"] < LARGE.get(hostile.name, MOST)
    # Once for a tool, and a schema of 300 kB is read in no less.
    assert max(used.values()) < LARGE.get(hostile.name, 3 * MOST)


def test_65535_nodes_of_two_kinds() -> None:
    text = written(15)
    began = time.process_time()
    assert isinstance(TREE(text), Fits)
    print(f"65,535 nodes: {(time.process_time() - began) * 1000:.0f} ms")
    assert time.process_time() - began < 5
