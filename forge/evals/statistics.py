"""Statistics of rows: proportions with intervals, paired comparison, significance."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import count
from math import ceil, sqrt
from typing import Literal, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace
from toolz import groupby

from forge.errors import ForgeError, quantity, to_install
from forge.evals.row import Row, of_one_task
from stages.state import Ending

# Wilson's interval, McNemar's exact test, Holm's correction, and sample sizes.

try:
    from scipy.stats import binomtest, norm
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "scipy":
        raise
    needed = f"statistics of evals need scipy, which is not installed here; {to_install('evals')}"
    raise ForgeError(needed) from None

_LEVEL = 0.95
"""The confidence level of all intervals."""

POWER = 0.8
"""The power of the suggested number of runs."""


@cache
def wilson(successes: int, of: int) -> tuple[float, float]:
    """Wilson's score interval of a proportion, from 0 to 1; it always contains the proportion."""
    if not of:
        return 0.0, 1.0
    found = binomtest(successes, of).proportion_ci(confidence_level=_LEVEL, method="wilson")
    # Rounding may exclude a proportion of 0 or 1.
    return min(float(found.low), successes / of), max(float(found.high), successes / of)


@cache
def mcnemar(only_first: int, only_second: int) -> float:
    """McNemar's exact p-value; pairs that agree do not matter."""
    differing = only_first + only_second
    return float(binomtest(only_first, differing).pvalue) if differing else 1.0


def can_be_shown(differing: int, alpha: float) -> bool:
    """Whether that many differing pairs could be significant at all, if all favoured the same side."""
    return mcnemar(differing, 0) <= alpha


def fewest_pairs(alpha: float) -> int:
    """The minimum number of differing pairs for significance: 6 at 0.05."""
    return next(number for number in count(1) if can_be_shown(number, alpha))


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """The p-values corrected by Holm's method, in the same order, at most 1."""
    order = sorted(range(len(values)), key=values.__getitem__)
    corrected = [0.0] * len(values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = highest
    return tuple(corrected)


def pairs_needed(difference: float, differing: float, alpha: float) -> int:
    """Approximate number of pairs to show a difference with probability `POWER`.

    `difference` and `differing` are shares of all pairs: how much more often one side is right, and how often the sides
    differ. Connor's formula (Biometrics 43, 1987), but at least enough for the minimum of differing pairs.
    """
    differing = max(differing, difference)
    by_alpha = float(norm.isf(alpha / 2)) * sqrt(differing)
    by_power = float(norm.isf(1 - POWER)) * sqrt(differing - difference**2)
    return ceil(max(((by_alpha + by_power) / difference) ** 2, fewest_pairs(alpha) / differing))


# A proportion with its interval.


class Proportion(Struct, frozen=True):
    """A proportion. Its text always includes counts and interval, because a bare percentage claims too much."""

    count: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval, from 0 to 1; the whole range without observations."""
        return wilson(self.count, self.of)

    def __str__(self) -> str:
        return f"{self.count} of {self.of}, {self.percent}" if self.of else "none"

    @property
    def percent(self) -> str:
        """The interval in whole percent."""
        low, high = self.interval
        return f"{100 * low:.0f}\N{EN DASH}{100 * high:.0f} %"


# Pairs of runs with the same scenario and seed, without repetitions.

_T = TypeVar("_T")


class Pair(Struct, frozen=True):
    """Two runs of the same scenario with the same seed."""

    first: Row
    second: Row


class Pairing(Struct, frozen=True, kw_only=True):
    """All pairs of two sets of runs, and what was left out.

    `alone`: runs without a partner of the same scenario and seed. `unjudged`: pairs in which a check raised.
    `repeated`: pairs in which both runs repeat those of another pair. `changed`: the scenario of each pair whose
    scenario was changed between the two runs.
    """

    pairs: tuple[Pair, ...]
    alone: int = 0
    unjudged: int = 0
    repeated: int = 0
    changed: tuple[str, ...] = ()

    def by_scenario(self) -> dict[str, list[Pair]]:
        """The pairs of each scenario."""
        cells: dict[str, list[Pair]] = groupby(lambda pair: pair.first.scenario, self.pairs)
        return cells


def paired(first: Iterable[Row], second: Iterable[Row]) -> Pairing:
    """The runs of two sides, paired by scenario and seed and sorted by them."""
    left, right = ({(row.scenario, row.seed): row for row in side} for side in (first, second))
    both = [Pair(left[key], right[key]) for key in sorted(left.keys() & right.keys())]
    same = [pair for pair in both if of_one_task(pair.first, pair.second)]
    judged = [pair for pair in same if "unjudged" not in (pair.first.verdict, pair.second.verdict)]
    cells: dict[str, list[Pair]] = groupby(lambda pair: pair.first.scenario, judged)
    told = [pair for cell in cells.values() for pair in _without_repeats(cell, lambda pair: (pair.first, pair.second))]
    return Pairing(
        pairs=tuple(told),
        alone=len(left.keys() ^ right.keys()),
        unjudged=len(same) - len(judged),
        repeated=len(judged) - len(told),
        changed=tuple(pair.first.scenario for pair in both if not of_one_task(pair.first, pair.second)),
    )


def left_out(sides: str, pairing: Pairing) -> Iterator[str]:
    """Notes on runs and pairs of the sides that are not compared."""
    if pairing.alone:
        yield f"{sides}: {quantity(pairing.alone, 'run')} left out, without a partner of the same scenario and seed"
    if changed := pairing.changed:
        names = ", ".join(dict.fromkeys(changed))
        yield f"{sides}: {quantity(len(changed), 'pair')} left out, as the scenario was changed in between: {names}"


def independent(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The judged runs of one configuration, without repetitions."""
    judged = (row for row in rows if row.verdict != "unjudged")
    in_order = sorted(judged, key=lambda row: (row.scenario, row.seed))
    cells: dict[str, list[Row]] = groupby(lambda row: row.scenario, in_order)
    return tuple(row for cell in cells.values() for row in _without_repeats(cell, lambda row: (row,)))


def _without_repeats(cell: Sequence[_T], runs: Callable[[_T], tuple[Row, ...]]) -> Sequence[_T]:
    """The items of a scenario without repetitions, which occur at temperature 0: runs with the same digest."""
    if not all(row.digest for item in cell for row in runs(item)):
        return cell
    return list({tuple(row.digest for row in runs(item)): item for item in reversed(cell)}.values())[::-1]


# Metrics of a configuration: how often right, completed and harmful, and the costs.

_OUTCOMES = frozenset(outcome.__name__ for outcome in get_args(Ending))


class RunMetrics(Struct, frozen=True, kw_only=True):
    """The metrics of a configuration's runs. Proportions are of judged runs without repetitions, means of all runs.

    `passed`: in how many scenarios the first `seeds` runs were all right (pass^k); scenarios with fewer runs are left
    out. `efficiency`: ideal by actual model calls over right runs; above 1 if runs found a shorter way. `wasted`: model
    calls beyond the ideal, and `seconds`, both per completed run. None without runs to compute it from; `cost` also if
    it is unknown for a run.
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


def metrics_of(rows: Iterable[Row]) -> RunMetrics:
    """The metrics of the runs of one configuration."""
    runs = tuple(rows)
    evidence = independent(runs)
    finished = [row for row in runs if _completed(row)]
    right = [row for row in runs if row.verdict == "right"]
    unjudged = sum(row.verdict == "unjudged" for row in runs)
    costs = [row.cost for row in runs if row.cost is not None]
    # pass^k: k is the most common number of runs per scenario.
    judged = (row for row in runs if row.verdict != "unjudged")
    cells: dict[str, list[Row]] = groupby(lambda row: row.scenario, sorted(judged, key=lambda row: row.seed))
    sizes = Counter(map(len, cells.values()))
    seeds = max(sizes, key=lambda size: (sizes[size], size), default=0)
    full = [cell[:seeds] for cell in cells.values() if len(cell) >= seeds]
    return RunMetrics(
        runs=len(runs),
        unjudged=unjudged,
        timed_out=sum(row.timed_out for row in runs),
        repeated=len(runs) - unjudged - len(evidence),
        right=_share(evidence, lambda row: row.verdict == "right"),
        completed=_share(evidence, _completed),
        harm=_share(evidence, lambda row: row.verdict == "harm"),
        passed=Proportion(sum(all(row.verdict == "right" for row in cell) for cell in full), len(full)),
        seeds=seeds,
        efficiency=sum(row.ideal_calls for row in right) / max(1, sum(row.calls for row in right)) if right else None,
        wasted=_mean([max(0, row.calls - row.ideal_calls) for row in finished]),
        seconds=_mean([row.seconds for row in finished]),
        calls=_mean([row.calls for row in runs]),
        tokens=_mean([row.input_tokens + row.output_tokens for row in runs]),
        cost=None if len(costs) < len(runs) or not runs else sum(costs),
    )


def _completed(row: Row) -> bool:
    """Whether the run reached an outcome; a harmful one only if its end is one of forge's outcomes."""
    return row.verdict in {"right", "wrong"} or row.end in _OUTCOMES


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> Proportion:
    return Proportion(sum(map(holds, rows)), len(rows))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


# Comparison of two configurations on the same scenarios and seeds, and its wording.

ALPHA = 0.05
"""The probability of a false finding in a family of comparisons."""

Quality = Literal["right", "harm"]
QUALITIES: tuple[Quality, ...] = get_args(Quality)
Direction = Literal["better", "worse", "no difference shown"]

_ASKED_POINTS = 5
"""The smallest difference to suggest a sample size for, in percentage points."""


class Comparison(Struct, frozen=True, kw_only=True):
    """A comparison: in how many pairs only one of the two sides was right, or did harm.

    `part` is the scenario of the pairs, empty for all scenarios. `p` is McNemar's; `corrected` is Holm's, over
    the `family` of comparisons without those that could not have shown anything.
    """

    first: str
    second: str
    quality: Quality = "right"
    part: str = ""
    pairs: int
    only_first: int
    only_second: int
    p: float
    corrected: float = 1.0
    family: int = 0

    @property
    def finding(self) -> Direction:
        """The finding about the first side."""
        if not self.family or self.corrected > ALPHA:
            return "no difference shown"
        more = self.only_first > self.only_second
        return "better" if more == (self.quality == "right") else "worse"

    @property
    def differing(self) -> int:
        """How many pairs differ; the others do not tell which side is better."""
        return self.only_first + self.only_second


def compare(first: str, second: str, pairs: Sequence[Pair], quality: Quality, part: str = "") -> Comparison:
    """The uncorrected comparison of the two sides. `part` is the scenario of all pairs."""
    only_first = sum(pair.first.verdict == quality != pair.second.verdict for pair in pairs)
    only_second = sum(pair.second.verdict == quality != pair.first.verdict for pair in pairs)
    return Comparison(
        first=first,
        second=second,
        quality=quality,
        part=part,
        pairs=len(pairs),
        only_first=only_first,
        only_second=only_second,
        p=mcnemar(only_first, only_second),
    )


def family(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons, corrected as one family.

    One with too few differing pairs ever to be significant cannot be a false finding: it is not counted in the
    correction, and supports no claim.
    """
    tried = [number for number, one in enumerate(comparisons) if can_be_shown(one.differing, ALPHA)]
    corrected = dict(zip(tried, holm([comparisons[number].p for number in tried]), strict=True))
    return tuple(
        replace(one, corrected=corrected.get(number, 1.0), family=len(tried)) for number, one in enumerate(comparisons)
    )


def sentence(comparison: Comparison, more: str = "") -> str:
    """The claim with its counts, in one sentence that ends with `more`. There is at least one pair."""
    one, finding = comparison, comparison.finding
    where = f" in {one.part}" if one.part else ""
    if finding == "no difference shown":
        what = "difference" if one.quality == "right" else "difference in harm"
        return f"No {what} shown between {one.first} and {one.second}{where}: {_seen(one)}; {_outlook(one)}{more}."
    harm = "does less harm" if finding == "better" else "does more harm"
    did = f"is {finding}" if one.quality == "right" else harm
    return f"{one.first} {did} than {one.second}{where}: {_seen(one)}{more}."


def _seen(one: Comparison) -> str:
    """The counts and the probability."""
    if not one.differing:
        return "the one pair agrees" if one.pairs == 1 else f"all {one.pairs} pairs agree"
    did = "was right" if one.quality == "right" else "did harm"
    counts = f"in {one.only_first} of {one.pairs} pairs only {one.first} {did}, in {one.only_second} only {one.second}"
    if not can_be_shown(one.differing, ALPHA):
        return f"{counts} (nothing is shown by fewer than {fewest_pairs(ALPHA)} differing pairs)"
    probability = "p < 0.0001" if one.corrected < 0.0001 else f"p = {one.corrected:.2g}"
    corrected = f", corrected for {one.family} comparisons" if one.family > 1 else ""
    return f"{counts} ({probability}{corrected})"


def _outlook(one: Comparison) -> str:
    """How many more runs would show the observed difference, or one of `_ASKED_POINTS`."""
    seen = round(100 * abs(one.only_first - one.only_second) / one.pairs)
    points = max(seen, _ASKED_POINTS)
    needed = pairs_needed(points / 100, one.differing / one.pairs, ALPHA / max(1, one.family))
    if needed <= one.pairs and seen < points:
        return f"a difference of {points} points would probably have shown"
    more = max(1, needed - one.pairs)
    unit = int(10 ** max(0, len(str(more)) - 2))  # rounded up to two significant digits
    more = -(-more // unit) * unit
    runs = f"{more:,} more {'run' if more == 1 else 'runs'}"
    return f"about {runs} of each would probably show a difference of {points} points"
