"""Compaction throughput: the bare compactors at 100, 1,000 and 10,000 messages, with the sizes that a run keeps."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.histories import history
from stages.compaction import Compacted, Compactor, ContextBudget, Meter, SlidingWindowCompact, TieredCompact
from stages.message import size

CASES: dict[str, tuple[Compactor, float, float, int]] = {
    # A compactor, the share of the history's tokens that the budget has, the part to come down to, the phase.
    "nothing due": (TieredCompact(), 2.0, 0.25, 0),
    "some truncated": (TieredCompact(), 1.3, 0.75, 1),
    "all truncated": (TieredCompact(phase_thresholds=(0.75, 0.9, 0.9)), 1.3, 0.75, 1),
    "results emptied": (TieredCompact(), 1.0, 0.5, 2),
    "calls listed": (TieredCompact(), 1.0, 0.25, 4),
    "sliding window": (SlidingWindowCompact(), 1.0, 0.25, 1),
}


@pytest.mark.parametrize("messages", [100, 1_000, 10_000])
@pytest.mark.parametrize("case", CASES)
def test_compactor(benchmark: BenchmarkFixture, case: str, messages: int) -> None:
    compactor, share, low, phase = CASES[case]
    long = history(messages)
    sizes = tuple(map(size, long))
    tokens = int(sum(sizes) * 0.25 * share)
    result = benchmark(compactor, long, ContextBudget(tokens=tokens, low=low, meter=Meter(sizes=sizes)))
    benchmark.extra_info["messages"] = messages
    assert isinstance(result, Compacted)
    assert result.phase == phase
