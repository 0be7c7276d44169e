"""What a report says of how sure its runs were: calibration, and what stopping the least sure would have left."""

from collections.abc import Iterator

from forge.errors import quantity
from forge.evals.calibration import expected_calibration_error, judged_confidences, reliability, risk_at, risk_coverage
from forge.evals.report import Column

_COVERAGES = (0.9, 0.75, 0.5)


def calibration_texts(column: Column) -> Iterator[str]:
    """Sentences on the runs of the column whose confidence was measured; none where there are none."""
    pairs = judged_confidences(row for runs in column.runs.values() for row in runs)
    error = expected_calibration_error(pairs)
    if error is None:
        return
    bins = (f"{one.right} of {one.runs} at {one.low:.1f} to {one.high:.1f}" for one in reliability(pairs))
    yield (
        f"Confidence of {column.name}, measured in {quantity(len(pairs), 'run')}: expected calibration error "
        f"{error:.2f}; right in {', '.join(bins)}."
    )
    curve = risk_coverage(pairs)
    points = [point for coverage in _COVERAGES if (point := risk_at(curve, coverage))]
    told = (
        f"below {point.threshold:.2f}, {point.coverage:.0%} would be left, {point.risk:.0%} of them not right"
        for point in dict.fromkeys(points)
        if point.coverage < 1
    )
    stopped = "; ".join(told) or "nowhere, as all are equally sure"
    yield f"Of all of them {curve[-1].risk:.0%} were not right; stopped {stopped}."
