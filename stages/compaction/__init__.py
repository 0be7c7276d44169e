"""Compaction: pure functions from a history and its budget to a shorter history."""

from stages.compaction.compactors import (
    Compacted,
    CompactionResult,
    Compactor,
    NoCompact,
    SlidingWindowCompact,
    TieredCompact,
)
from stages.context_budget import ContextBudget, Meter, estimate

__all__ = [
    "Compacted",
    "CompactionResult",
    "Compactor",
    "ContextBudget",
    "Meter",
    "NoCompact",
    "SlidingWindowCompact",
    "TieredCompact",
    "estimate",
]
