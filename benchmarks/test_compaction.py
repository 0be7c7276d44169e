"""Compaction throughput: the bare compactors at 100, 1,000 and 10,000 messages."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.histories import history
from stages.compaction import Compacted, Compactor, ContextBudget, SlidingWindowCompact, TieredCompact

COMPACTORS: list[tuple[Compactor, float, int]] = [
    # With the share of the history's tokens that the budget has, and the phase that this leads to.
    (TieredCompact(), 2.0, 0),
    (TieredCompact(), 1.0, 1),
    (TieredCompact(), 0.6, 2),
    (SlidingWindowCompact(), 0.6, 1),
]


@pytest.mark.parametrize("messages", [100, 1_000, 10_000])
@pytest.mark.parametrize(
    ("compactor", "share", "phase"),
    COMPACTORS,
    ids=lambda value: getattr(value, "__class__", type(value)).__name__ + str(value)[-4:],
)
def test_compactor(benchmark: BenchmarkFixture, compactor: Compactor, share: float, phase: int, messages: int) -> None:
    long = history(messages)
    tokens = int(sum(len(m.text) + 60 for m in long) * 0.25 * share)
    result = benchmark(compactor, long, ContextBudget(tokens=tokens))
    benchmark.extra_info["messages"] = messages
    assert isinstance(result, Compacted)
    assert result.phase == phase
