"""Reasoning separated from a reply's text, in whole replies and in streams."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from stages.reasoning.cutting import Split
    from stages.reasoning.splitting import (
        SplitDelta,
        advance_split,
        finish_split,
        join_split,
        split_reasoning,
        without_reasoning,
    )

__all__ = [
    "Split",
    "SplitDelta",
    "advance_split",
    "finish_split",
    "join_split",
    "split_reasoning",
    "without_reasoning",
]

__getattr__ = later(
    __name__,
    {
        "stages.reasoning.cutting": ("Split",),
        "stages.reasoning.splitting": (
            "SplitDelta",
            "advance_split",
            "finish_split",
            "join_split",
            "split_reasoning",
            "without_reasoning",
        ),
    },
)
