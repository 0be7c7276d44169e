"""Report: configurations by scenarios, and what each pair of configurations shows. A pure function of rows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from forge.errors import ForgeError
from forge.evals.comparison import ALPHA, Comparison, compare, family
from forge.evals.metrics import Metrics, metrics_of
from forge.evals.pairing import Pair, Pairing, paired
from forge.evals.row import Configuration, Row
from forge.workflow.suggestions import did_you_mean


class Column(Struct, frozen=True, kw_only=True):
    """A configuration with all of its runs; `runs` by scenario, in the order of their seeds.

    `label` tells it from all other columns, `name` from those of its model.
    """

    configuration: Configuration
    label: str
    name: str
    metrics: Metrics
    runs: Mapping[str, tuple[Row, ...]]

    def tagged(self, tag: str) -> tuple[Row, ...]:
        """The runs of the scenarios with that tag."""
        return tuple(row for runs in self.runs.values() for row in runs if tag in row.tags)

    @property
    def planned(self) -> int:
        """How many runs it was to have when the last of them was made; 0 if that is not known."""
        return max((row.planned for runs in self.runs.values() for row in runs), default=0)


class Matchup(Struct, frozen=True, kw_only=True):
    """Two columns, by their numbers, compared on the pairs of their runs.

    `right` and `harm` are corrected with those of the other matchups, `scenarios` (in `right`) with one another, and so
    are `tags`.
    `asked`: it was chosen by its reference, before anybody saw the results.
    """

    first: int
    second: int
    asked: bool
    right: Comparison
    harm: Comparison
    scenarios: tuple[Comparison, ...]
    tags: tuple[Comparison, ...]
    pairing: Pairing


class EvalReport(Struct, frozen=True, kw_only=True):
    """The columns, those of a model side by side, the best first; the scenarios with their tags; every matchup."""

    columns: tuple[Column, ...]
    scenarios: Mapping[str, tuple[str, ...]]
    matchups: tuple[Matchup, ...]
    alpha: float = ALPHA

    @property
    def tags(self) -> list[str]:
        """The tags that tell scenarios apart: one that all of them have says no more than the whole."""
        every = [frozenset(tags) for tags in self.scenarios.values()]
        return sorted(frozenset().union(*every) - frozenset.intersection(*every)) if every else []

    @property
    def shown(self) -> tuple[Matchup, ...]:
        """The matchups that a short report tells: those asked for, or each model's best column against its others."""
        asked = tuple(one for one in self.matchups if one.asked)
        return asked or tuple(one for one in self.matchups if self._is_of_best(one))

    def _is_of_best(self, matchup: Matchup) -> bool:
        models = [column.configuration.model for column in self.columns]
        model = models[matchup.first]
        return matchup.first == models.index(model) and models[matchup.second] == model


def report_of(rows: Iterable[Row], against: str = "", alpha: float = ALPHA) -> EvalReport:
    """The report of the rows. ForgeError if no configuration has the name `against`.

    Every pair of columns is compared. With `against`, those of this configuration with the other columns of its model
    are a family of their own, and need less to be significant than if they were chosen among all.
    """
    columns = tuple(_columns(tuple(rows)))
    asked = frozenset(_asked(columns, against)) if against else frozenset()
    others = [pair for pair in combinations(range(len(columns)), 2) if not asked & {pair, pair[::-1]}]
    matchups = (*_matchups(columns, sorted(asked), alpha, asked=True), *_matchups(columns, others, alpha, asked=False))
    return EvalReport(columns=columns, scenarios=_scenarios(columns), matchups=matchups, alpha=alpha)


def labels(configurations: Iterable[Configuration]) -> dict[Configuration, str]:
    """A name for each configuration, the shortest that tells it from the others."""
    known = list(dict.fromkeys(configurations))
    told = [part for part in ("model", "backend") if len({getattr(one, part) for one in known}) > 1]
    warm = len({one.temperature for one in known}) > 1
    return {one: _label(one.name if warm else one.way, [getattr(one, part) for part in told]) for one in known}


def _label(name: str, apart: Sequence[str]) -> str:
    return f"{name} ({', '.join(apart)})" if apart else name


def _columns(rows: Sequence[Row]) -> Iterator[Column]:
    by_configuration: defaultdict[Configuration, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.scenario, row.seed)):
        by_configuration[row.configuration].append(row)
    measured = {one: metrics_of(runs) for one, runs in by_configuration.items()}
    named = labels(by_configuration)
    short = {one: labels(other for other in named if other.model == one.model)[one] for one in named}

    def place(one: Configuration) -> tuple[str, float, str]:
        low, _ = measured[one].right.interval  # one right of one is not better than 50 of 60
        return one.model, -low, named[one]

    for one in sorted(by_configuration, key=place):
        runs = _by_scenario(by_configuration[one])
        yield Column(configuration=one, label=named[one], name=short[one], metrics=measured[one], runs=runs)


def _by_scenario(rows: Iterable[Row]) -> dict[str, tuple[Row, ...]]:
    cells: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        cells[row.scenario].append(row)
    return {name: tuple(cell) for name, cell in cells.items()}


def _scenarios(columns: Iterable[Column]) -> dict[str, tuple[str, ...]]:
    """The scenarios with their tags, those with the same first tag together."""
    tags: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for column in columns:
        for name, runs in column.runs.items():
            tags[name].update(dict.fromkeys(tag for row in runs for tag in row.tags))
    return {name: tuple(sorted(tags[name])) for name in sorted(tags, key=lambda name: (sorted(tags[name])[:1], name))}


def _asked(columns: Sequence[Column], against: str) -> Iterator[tuple[int, int]]:
    """The pairs of columns to compare: each one of that name with the others of its model."""
    chosen = [number for number, one in enumerate(columns) if against in (one.label, one.name, one.configuration.name)]
    if not chosen:
        known = list(dict.fromkeys(column.name for column in columns))
        meant = did_you_mean(against, known)
        raise ForgeError(f"there are no runs of {against!r}; there are runs of: {', '.join(known)}.{meant}")
    for first in chosen:
        for second, other in enumerate(columns):
            if second not in chosen and other.configuration.model == columns[first].configuration.model:
                yield first, second


def _matchups(
    columns: Sequence[Column], pairs: Sequence[tuple[int, int]], alpha: float, *, asked: bool
) -> Iterator[Matchup]:
    """The matchups of these pairs of columns, as one family."""
    pairings = [paired(_rows(columns[first]), _rows(columns[second])) for first, second in pairs]
    names = [_names(columns[first], columns[second]) for first, second in pairs]
    overall = [
        compare(*name, pairing.pairs, quality)
        for name, pairing in zip(names, pairings, strict=True)
        for quality in ("right", "harm")
    ]
    corrected = iter(family(overall, alpha))
    for (first, second), name, pairing in zip(pairs, names, pairings, strict=True):
        right, harm = next(corrected), next(corrected)
        scenarios, tags = (_parts(name, cells, right, alpha) for cells in (pairing.by_scenario(), pairing.by_tag()))
        yield Matchup(
            first=first,
            second=second,
            asked=asked,
            right=right,
            harm=harm,
            scenarios=scenarios,
            tags=tags,
            pairing=pairing,
        )


def _parts(
    names: tuple[str, str], cells: Mapping[str, Sequence[Pair]], whole: Comparison, alpha: float
) -> tuple[Comparison, ...]:
    """The comparison of each part as one family; a single one is the whole: it must not need less to be significant."""
    each = [compare(*names, cell, "right", part) for part, cell in cells.items()]
    return family(each, alpha) if len(each) > 1 else tuple(replace(whole, part=one.part) for one in each)


def _names(first: Column, second: Column) -> tuple[str, str]:
    """What the two are called in a sentence: without the model where that is the same."""
    same = first.configuration.model == second.configuration.model
    return (first.name, second.name) if same else (first.label, second.label)


def _rows(column: Column) -> Iterator[Row]:
    for runs in column.runs.values():
        yield from runs
