"""Metrics of a configuration's runs: how often right, completed and harmful, and what it took."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import get_args

from msgspec import Struct

from forge.evals.pairing import independent
from forge.evals.proportion import Proportion
from forge.evals.row import Row
from stages.state import Ending

_OUTCOMES = frozenset(outcome.__name__ for outcome in get_args(Ending))


class Metrics(Struct, frozen=True, kw_only=True):
    """What runs came to. Proportions count the judged runs that do not repeat another one; means are of all runs.

    `passed`: of how many scenarios all of the first `seeds` runs were right (pass^k); scenarios with fewer runs are
    left out. `timed_out`: runs that had not ended in their time. `efficiency`: the ideal number of model calls by those
    made, over the runs that were right; above 1 if runs found a shorter way. `wasted`: model calls beyond the ideal,
    `seconds`: duration, both a completed run. None where there is no run to take it from, `cost` also where a run's is
    not known.
    """

    runs: int
    unjudged: int
    timed_out: int
    repeated: int
    right: Proportion
    completed: Proportion
    harm: Proportion
    passed: Proportion
    seeds: int
    efficiency: float | None
    wasted: float | None
    seconds: float | None
    calls: float | None
    tokens: float | None
    cost: float | None


def metrics_of(rows: Iterable[Row]) -> Metrics:
    """The metrics of the runs of one configuration."""
    runs = tuple(rows)
    evidence = independent(runs)
    finished = [row for row in runs if _completed(row)]
    right = [row for row in runs if row.verdict == "right"]
    unjudged = sum(row.verdict == "unjudged" for row in runs)
    seeds, passed = _passed(runs)
    return Metrics(
        runs=len(runs),
        unjudged=unjudged,
        timed_out=sum(row.timed_out for row in runs),
        repeated=len(runs) - unjudged - len(evidence),
        right=_share(evidence, lambda row: row.verdict == "right"),
        completed=_share(evidence, _completed),
        harm=_share(evidence, lambda row: row.verdict == "harm"),
        passed=passed,
        seeds=seeds,
        efficiency=sum(row.ideal_calls for row in right) / max(1, sum(row.calls for row in right)) if right else None,
        wasted=_mean([max(0, row.calls - row.ideal_calls) for row in finished]),
        seconds=_mean([row.seconds for row in finished]),
        calls=_mean([row.calls for row in runs]),
        tokens=_mean([row.input_tokens + row.output_tokens for row in runs]),
        cost=_total([row.cost for row in runs]),
    )


def _completed(row: Row) -> bool:
    """Whether it reached an outcome: what is right or wrong did; of harm only the end tells, by forge's names."""
    return row.verdict in {"right", "wrong"} or row.end in _OUTCOMES


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> Proportion:
    return Proportion(sum(map(holds, rows)), len(rows))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _total(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known or not known else sum(cost for cost in known if cost is not None)


def _passed(rows: Iterable[Row]) -> tuple[int, Proportion]:
    """The number of runs that most scenarios have, and in how many of these scenarios so many runs were right."""
    cells: defaultdict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.seed):
        if row.verdict != "unjudged":
            cells[row.scenario].append(row)
    sizes = Counter(map(len, cells.values()))
    seeds = max(sizes, key=lambda size: (sizes[size], size), default=0)
    full = [cell[:seeds] for cell in cells.values() if len(cell) >= seeds]
    return seeds, Proportion(sum(all(row.verdict == "right" for row in cell) for cell in full), len(full))
