"""Grounding: where the values of a call come from, and what may be calculated from them."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from stages.grounding.calculation import Calculation, Incalculable, calculate
    from stages.grounding.matching import Evidence, evidence

__all__ = [
    "Calculation",
    "Evidence",
    "Incalculable",
    "calculate",
    "evidence",
]

__getattr__ = later(
    __name__,
    {
        "stages.grounding.calculation": (
            "Calculation",
            "Incalculable",
            "calculate",
        ),
        "stages.grounding.matching": (
            "Evidence",
            "evidence",
        ),
    },
)
