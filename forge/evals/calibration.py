"""Calibration: whether surer runs were right more often, and what a threshold would have left out.

Pure functions of pairs: how sure a run was, from 0 to 1, and whether it was right.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import ceil

from msgspec import Struct

from forge.evals.row import Row

BINS = 10

_Pair = tuple[float, bool]
"""How sure a run was, and whether it was right."""


class ReliabilityBin(Struct, frozen=True, kw_only=True):
    """Runs of similar confidence: over `low`, up to `high`; the first bin has 0 too. `confidence` is their mean."""

    low: float
    high: float
    runs: int
    right: int
    confidence: float

    @property
    def gap(self) -> float:
        """How far the share that was right is from the confidence."""
        return abs(self.right / self.runs - self.confidence)


class RiskAtCoverage(Struct, frozen=True, kw_only=True):
    """What would have come of it if runs less sure than `threshold` had stopped: shares from 0 to 1.

    `coverage` is that of the runs that are left, `risk` that of the wrong ones among them.
    """

    threshold: float
    coverage: float
    risk: float


def judged_confidences(rows: Iterable[Row]) -> tuple[_Pair, ...]:
    """The pairs of the rows whose confidence was measured and that were judged."""
    known = (row for row in rows if row.confidence is not None and row.verdict != "unjudged")
    return tuple((row.confidence, row.verdict == "right") for row in known if row.confidence is not None)


def reliability(pairs: Iterable[_Pair], bins: int = BINS) -> tuple[ReliabilityBin, ...]:
    """The data of a reliability diagram: bins of equal width, those that are not empty, from low to high."""
    ordered = sorted(pairs)
    grouped = groupby(ordered, key=lambda pair: max(0, ceil(pair[0] * bins) - 1))
    return tuple(_bin(number, bins, tuple(inside)) for number, inside in grouped)


def _bin(number: int, bins: int, inside: Sequence[_Pair]) -> ReliabilityBin:
    return ReliabilityBin(
        low=number / bins,
        high=(number + 1) / bins,
        runs=len(inside),
        right=sum(right for _, right in inside),
        confidence=sum(sure for sure, _ in inside) / len(inside),
    )


def expected_calibration_error(pairs: Iterable[_Pair], bins: int = BINS) -> float | None:
    """The mean gap of the bins, by their runs (Guo and others, "On Calibration of Modern Neural Networks", 2017).

    From 0 to 1; None without pairs.
    """
    found = reliability(pairs, bins)
    runs = sum(one.runs for one in found)
    return sum(one.runs * one.gap for one in found) / runs if runs else None


def risk_coverage(pairs: Iterable[_Pair]) -> tuple[RiskAtCoverage, ...]:
    """Risk against coverage, a point for each threshold at which a run more would have stopped; the strictest first.

    The last one has all runs (El-Yaniv and Wiener, "On the Foundations of Noise-free Selective Classification", 2010).
    """
    ordered = sorted(pairs, key=lambda pair: -pair[0])
    found: list[RiskAtCoverage] = []
    covered = wrong = 0
    for threshold, inside in groupby(ordered, key=lambda pair: pair[0]):
        judged = [right for _, right in inside]
        covered += len(judged)
        wrong += judged.count(False)
        found.append(RiskAtCoverage(threshold=threshold, coverage=covered / len(ordered), risk=wrong / covered))
    return tuple(found)


def risk_at(curve: Sequence[RiskAtCoverage], coverage: float) -> RiskAtCoverage | None:
    """The point of the curve with at least that coverage and as little more as there is; None without runs."""
    return next((point for point in curve if point.coverage >= coverage - 1e-12), None)
