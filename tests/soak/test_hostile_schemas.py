"""Processor time of the hostile schemas, one by one; with `-s` the table is printed."""

import json
import time

import pytest

from stages.schema import Fits, Misfit, checker, project
from tests.hostile_schemas import Hostile, hostile_schemas
from tests.stages.schema.test_judging import TREE, branching

MOST = 0.05
"""Seconds of processor time for a call."""

LARGE = {
    "arguments of 100 kB": 2.0,
    "200 alternatives of objects": 0.4,
    "5,000 alternatives for 200": 0.4,
}
"""Where schema and arguments are both large, the time is bounded by their product."""


@pytest.mark.parametrize("hostile", [*hostile_schemas()], ids=lambda each: each.name)
def test_a_call_costs_at_most_so_much(hostile: Hostile) -> None:
    schema, arguments = json.dumps(hostile.schema).encode(), json.dumps(hostile.arguments)
    check = checker(schema)
    used: dict[str, float] = {}
    for name, function in {
        "compile": lambda: checker(schema),
        "check": lambda: check(arguments),
        "llama.cpp": lambda: project(schema, "llama.cpp"),
        "strict": lambda: project(schema, "openai-strict"),
    }.items():
        times = []
        for _ in range(3):
            began = time.process_time()
            function()
            times.append(time.process_time() - began)
        used[name] = min(times)
    shown = ", ".join(f"{name} {seconds * 1000:.1f}" for name, seconds in used.items())
    print(f"{hostile.name}: {len(schema)} and {len(arguments)} characters, {shown} ms")
    assert isinstance(check(arguments), Fits | Misfit)
    assert used["check"] < LARGE.get(hostile.name, MOST)
    # Once for a tool, and a schema of 300 kB is read in no less.
    assert max(used.values()) < LARGE.get(hostile.name, 3 * MOST)


def test_65535_nodes_of_two_kinds() -> None:
    text = json.dumps({"tree": branching(15, 1)})
    began = time.process_time()
    assert isinstance(TREE(text), Fits)
    print(f"65,535 nodes: {(time.process_time() - began) * 1000:.0f} ms")
    assert time.process_time() - began < 5
