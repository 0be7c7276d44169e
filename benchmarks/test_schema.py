"""The check of one call's arguments: fitting, coerced, refused; compiling and projecting a schema; hostile sizes."""

import json

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from forge.tools.definition import describe
from stages.schema import Fits, Misfit, checker, project

PARAMETERS = json.dumps(
    {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "pattern": "^[A-Z]-\\d+$"},
            "qty": {"type": "integer", "minimum": 1},
            "filters": {"$ref": "#/$defs/filters"},
            "mode": {"anyOf": [{"enum": ["fast", "slow"]}, {"type": "null"}]},
        },
        "required": ["order_id"],
        "additionalProperties": False,
        "$defs": {"filters": {"type": "object", "properties": {"limit": {"type": "integer"}}}},
    }
).encode()
CALLS = {
    "fits": '{"order_id":"A-17","qty":3,"filters":{"limit":5},"mode":"fast"}',
    "coerced": '{"order_id":"A-17","qty":"3","filters":"{\\"limit\\":\\"5\\"}","mode":"fast"}',
    "refused": '{"order":"A-17","qty":"three"}',
}


@pytest.mark.parametrize("kind", [*CALLS])
def test_one_call(benchmark: BenchmarkFixture, kind: str) -> None:
    result = benchmark(checker(PARAMETERS), CALLS[kind])
    assert isinstance(result, Misfit if kind == "refused" else Fits)


@pytest.mark.parametrize("items", [100, 1_000, 10_000])
@pytest.mark.parametrize("item", ["7", "x"])
def test_long_lists_take_linear_time(benchmark: BenchmarkFixture, items: int, item: str) -> None:
    check = checker(b'{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}')
    result = benchmark(check, json.dumps({"a": [item] * items}))
    assert isinstance(result, Fits if item == "7" else Misfit)


@pytest.mark.parametrize("levels", [15, 30, 60])
def test_alternatives_within_alternatives_take_bounded_time(benchmark: BenchmarkFixture, levels: int) -> None:
    """Both alternatives hold the next level; trying both at each would double the time with every level."""
    kinds = [{"type": "object", "properties": {"c": {"$ref": "#"}, "k": {"const": k}}, "required": ["k"]} for k in "ab"]
    check = checker(json.dumps({"anyOf": kinds}).encode())
    assert isinstance(benchmark(check, '{"k":"a","c":' * levels + "{}" + "}" * levels), Misfit)


def test_compile(benchmark: BenchmarkFixture) -> None:
    benchmark(checker, PARAMETERS)


def test_project(benchmark: BenchmarkFixture) -> None:
    benchmark(project, PARAMETERS, "llama.cpp")


def test_describe(benchmark: BenchmarkFixture) -> None:
    def get_order(order_id: str, days: int = 7) -> None:
        """Look an order up.

        Args:
            order_id: As in A-17.
            days: How far back.
        """

    benchmark(describe, get_order)
