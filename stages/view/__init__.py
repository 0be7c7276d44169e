"""View: what a model is shown of a run's history."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from stages.tool import RECALL
    from stages.view.collapse import collapsed
    from stages.view.notes import ContextUse, ContextWarning
    from stages.view.summary import Summarize

__all__ = [
    "RECALL",
    "ContextUse",
    "ContextWarning",
    "Summarize",
    "collapsed",
]

__getattr__ = later(
    __name__,
    {
        "stages.view.collapse": ("collapsed",),
        "stages.view.recall": ("RECALL",),
        "stages.view.summary": ("Summarize",),
        "stages.view.notes": (
            "ContextUse",
            "ContextWarning",
        ),
    },
)
