"""Reasoning told apart from a reply's text, in whole replies and in streams."""

from importlib import import_module
from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    """What holds patterns, when it is first asked for: they take long to compile."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "cutting" if name == "Split" else "splitting"
    return getattr(import_module(f"stages.reasoning.{module}"), name)
