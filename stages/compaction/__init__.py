"""Compaction: pure functions from a history and its budget to a shorter history."""

from stages.compaction.budget import Compacted, CompactionResult, Compactor, ContextBudget, Meter, estimate
from stages.compaction.compactors import NoCompact, SlidingWindowCompact, TieredCompact

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
