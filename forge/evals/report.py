"""Reports of rows: tables and notes, for a terminal and in Markdown."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations, groupby
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from forge.errors import ForgeError, quantity
from forge.evals.row import Configuration, Row, of_one_task
from forge.evals.statistics import (
    ALPHA,
    Comparison,
    Direction,
    Metrics,
    Pair,
    Pairing,
    basis,
    compare,
    expected_calibration_error,
    family,
    fewest_pairs,
    headline,
    judged_confidences,
    metrics_of,
    paired,
    reliability,
    risk_at,
    risk_coverage,
)
from stages.options import did_you_mean

# Report: configurations by scenarios, and what each pair of configurations shows. A pure function of rows.


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


class Findings(Struct, frozen=True, kw_only=True):
    """The columns, those of a model side by side, the best first; the scenarios with their tags; every matchup."""

    columns: tuple[Column, ...]
    scenarios: Mapping[str, tuple[str, ...]]
    matchups: tuple[Matchup, ...]
    alpha: float = ALPHA

    @property
    def shown(self) -> tuple[Matchup, ...]:
        """The matchups that a short report tells: those asked for, or each model's best column against its others."""
        asked = tuple(one for one in self.matchups if one.asked)
        return asked or tuple(one for one in self.matchups if self._is_of_best(one))

    def _is_of_best(self, matchup: Matchup) -> bool:
        models = [column.configuration.model for column in self.columns]
        model = models[matchup.first]
        return matchup.first == models.index(model) and models[matchup.second] == model


class Table(Struct, frozen=True):
    """Texts in rows under headings; the first of each row is its name."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Conclusion(Struct, frozen=True, kw_only=True):
    """What may be said, what it rests on, and what it says of the first of the two that it names.

    `only_first` and `only_second` are shares of the pairs.
    """

    headline: str
    grounds: str = ""
    finding: Direction = "no difference shown"
    only_first: float = 0.0
    only_second: float = 0.0

    def __str__(self) -> str:
        return f"{self.headline}{': ' * bool(self.grounds)}{self.grounds}."


class OfModel(Struct, frozen=True, kw_only=True):
    """What is told of one model: its columns' metrics, claims, how sure they were, and counts by scenario and by tag.

    `metrics` has a row for each of the columns, in their order. There is no table of tags where they tell nothing
    apart.
    """

    model: str
    columns: tuple[Column, ...]
    metrics: Table
    claims: tuple[Conclusion, ...]
    calibration: tuple[str, ...]
    scenarios: Table
    tags: Table | None


class EvalReport(Findings, frozen=True, kw_only=True):
    """What rows show, in the words that are the same in a terminal, in Markdown and on a page.

    `facts`: what was run. `method`: how claims were found. `notes`: what has to be known before relying on them.
    `meanings` of the headings of the metrics. `few_seeds`: that there are too few of them for a scenario by itself.
    """

    facts: str
    method: str
    models: tuple[OfModel, ...]
    meanings: Mapping[str, str]
    few_seeds: str
    notes: tuple[str, ...]


def report_of(rows: Iterable[Row], against: str = "", alpha: float = ALPHA) -> EvalReport:
    """The report of the rows. ForgeError if no configuration has the name `against`.

    Every pair of columns is compared. With `against`, those of this configuration with the other columns of its model
    are a family of their own, and need less to be significant than if they were chosen among all.
    """
    columns = tuple(_columns(tuple(rows)))
    asked = frozenset(_asked(columns, against)) if against else frozenset()
    others = [pair for pair in combinations(range(len(columns)), 2) if not asked & {pair, pair[::-1]}]
    matchups = (*_matchups(columns, sorted(asked), alpha, asked=True), *_matchups(columns, others, alpha, asked=False))
    found = Findings(columns=columns, scenarios=_scenarios(columns), matchups=matchups, alpha=alpha)
    told = _told_metrics(columns)
    return EvalReport(
        columns=found.columns,
        scenarios=found.scenarios,
        matchups=found.matchups,
        alpha=found.alpha,
        facts=_facts(found),
        method=_method(found),
        models=tuple(_of_models(found, told)),
        meanings={heading: HEADINGS[heading] for heading in told},
        few_seeds=_few_seeds(found),
        notes=tuple(_notes(found)),
    )


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


# The texts of a report, the same in a terminal, in Markdown and on a page.

_NONE = "\N{EN DASH}"
"""What stands where there is nothing to tell."""


def _facts(report: Findings) -> str:
    """What was run, in a line."""
    rows = [row for column in report.columns for runs in column.runs.values() for row in runs]
    seeds = {len(runs) for column in report.columns for runs in column.runs.values()}
    commits = sorted({row.commit for row in rows if row.commit})
    of = f"{quantity(len(report.scenarios), 'scenario')} by {quantity(len(report.columns), 'configuration')}"
    each = f"{_range(seeds)} {'seed' if seeds == {1} else 'seeds'} each"
    made = (f"commit {', '.join(commits)}",) if commits else ()
    return ", ".join((_made(report, len(rows)), of, each, *_temperature(rows), *_days(rows), *made))


def _made(report: Findings, runs: int) -> str:
    """How many runs there are, and of how many that were planned."""
    planned = sum(max(column.planned, column.metrics.runs) for column in report.columns)
    return quantity(runs, "run") if planned == runs else f"{runs:,} of {planned:,} planned runs"


def _temperature(rows: list[Row]) -> Iterator[str]:
    """The one that was asked for in all runs, which is in no label then."""
    asked = {row.configuration.temperature for row in rows}
    yield from (f"temperature {one:g}" for one in asked if one is not None and len(asked) == 1)


def _range(numbers: set[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return f"{low}" if low == high else f"{low} to {high}"


def _days(rows: list[Row]) -> Iterator[str]:
    times = [row.started for row in rows if 0 < row.started < 1e11]
    if times:
        yield " to ".join(
            dict.fromkeys(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in (min(times), max(times)))
        )


HEADINGS: Mapping[str, str] = MappingProxyType(
    {
        "right": "runs with the right answer and no harm, with Wilson's 95 % interval",
        "harm": "runs that changed something nobody asked for, or to wrong values",
        "pass^k": "scenarios in which every seed was right",
        "completed": "runs that ended with an outcome, right or wrong",
        "efficiency": "ideal model calls by those made, over right runs; above 1: a shorter way was found",
        "wasted": "model calls beyond the ideal in a completed run",
        "calls": "model calls a run",
        "seconds": "a completed run",
        "tokens": "read and written a run",
        "cost": "of all runs, where each one's is known",
    }
)
"""The columns of the table of metrics, and what they mean."""


def _metric_texts(found: Metrics) -> dict[str, str]:
    """A configuration's metrics, as the columns of `HEADINGS`."""
    return {
        "right": str(found.right),
        "harm": str(found.harm),
        "pass^k": f"{found.passed} (k = {found.seeds})" if found.passed.of else _NONE,
        "completed": str(found.completed),
        "efficiency": _number(found.efficiency, ".2f"),
        "wasted": _number(found.wasted, ".1f"),
        "calls": _number(found.calls, ".1f"),
        "seconds": _number(found.seconds, ".1f"),
        "tokens": _number(found.tokens, ",.0f"),
        "cost": _number(found.cost, ".4g"),
    }


def _number(value: float | None, form: str) -> str:
    return _NONE if value is None else format(value, form)


def _told_metrics(columns: Iterable[Column]) -> list[str]:
    """The headings under which there is anything to tell."""
    texts = [_metric_texts(column.metrics) for column in columns]
    return [heading for heading in HEADINGS if any(text[heading] != _NONE for text in texts)]


def _of_models(report: Findings, told: Sequence[str]) -> Iterator[OfModel]:
    """What is told of each model; the headings of `told` are shown of its metrics."""
    claims = dict(_claims(report))
    every = [frozenset(tags) for tags in report.scenarios.values()]
    # A tag that all scenarios have says no more than the whole.
    apart = sorted(frozenset().union(*every) - frozenset.intersection(*every)) if every else []
    for model, group in groupby(report.columns, lambda column: column.configuration.model):
        columns = tuple(group)
        texts = [(column.name, _metric_texts(column.metrics)) for column in columns]
        metrics = tuple((name, *(metric[heading] for heading in told)) for name, metric in texts)
        tags = {tag: [column.tagged(tag) for column in columns] for tag in apart}
        yield OfModel(
            model=model,
            columns=columns,
            metrics=Table(("configuration", *told), metrics),
            claims=tuple(claims.get(model, ())),
            calibration=tuple(text for column in columns for text in _calibration(column)),
            scenarios=_counts(
                "scenario",
                columns,
                {name: [column.runs.get(name, ()) for column in columns] for name in report.scenarios},
            ),
            tags=_counts("tag", columns, tags) if tags else None,
        )


def _counts(kind: str, columns: Iterable[Column], cells: Mapping[str, Iterable[Sequence[Row]]]) -> Table:
    """The counts of each scenario, or tag, by configuration."""
    rows = tuple((name, *map(_cell_text, each)) for name, each in cells.items())
    return Table((kind, *(column.name for column in columns)), rows)


def _cell_text(runs: Sequence[Row]) -> str:
    """The runs of a scenario, or of a tag, by one configuration: right of judged; how many did harm, or timed out."""
    judged = [row.verdict for row in runs if row.verdict != "unjudged"]
    also = {"harm": judged.count("harm"), "timed out": sum(row.timed_out for row in runs)}
    told = "".join(f", {number} {word}" for word, number in also.items() if number)
    return f"{judged.count('right')}/{len(judged)}{told}" if judged else _NONE


def _claims(report: Findings) -> Iterator[tuple[str, list[Conclusion]]]:
    """What may be claimed, for each model."""
    for model, matchups in groupby(report.shown, lambda one: report.columns[one.first].configuration.model):
        told = [(right_claim(one), harm_claim(one)) for one in matchups]
        harm = [claim for _, claim in told if claim.finding != "no difference shown"]
        yield model, [claim for claim, _ in told] + (harm or [Conclusion(headline="No difference in harm is shown")])


def harm_claim(matchup: Matchup) -> Conclusion:
    """Which of the two does harm more often."""
    return _claim(matchup.harm)


def right_claim(matchup: Matchup) -> Conclusion:
    """Which of the two is right more often, over all scenarios, by scenario and by tag."""
    parts = {"scenario": matchup.scenarios, "tag": matchup.tags}
    return _claim(matchup.right, "".join(_of_parts(kind, each) for kind, each in parts.items()))


def _of_parts(kind: str, parts: Sequence[Comparison]) -> str:
    """In which scenarios, or with which tags, something is shown."""
    by_finding = {finding: [one.part for one in parts if one.finding == finding] for finding in ("better", "worse")}
    told = [f"{finding} in {', '.join(names)}" for finding, names in by_finding.items() if names]
    return f"; by {kind}: {'; '.join(told)}" if told else ""


def _claim(one: Comparison, more: str = "") -> Conclusion:
    return Conclusion(
        headline=headline(one),
        grounds=basis(one) + more,
        finding=one.finding,
        only_first=one.only_first / max(1, one.pairs),
        only_second=one.only_second / max(1, one.pairs),
    )


# Notes of a report: what a reader has to know of its runs, and of how they were compared, before relying on it.


def _notes(report: Findings) -> Iterator[str]:
    """What a reader has to know of the rows before relying on them."""
    for column in report.columns:
        yield from (f"{column.label}: {said}" for said in _of_column(column))
    yield from _mixed(report)
    yield from _left_out(report)
    yield from _commits(report)


def _of_column(column: Column) -> Iterator[str]:
    found = column.metrics
    if found.runs < column.planned:
        yield f"incomplete, {found.runs:,} of {column.planned:,} planned runs: comparisons count those with a partner"
    runs = [run for runs in column.runs.values() for run in runs]
    if larger := sum(run.larger_calls for run in runs):
        yield f"{larger:,} of {sum(run.calls for run in runs):,} model calls were the larger model's"
    if found.timed_out:
        yield f"{quantity(found.timed_out, 'run')} timed out, which may be the machine's fault, and counts as not right"
    if failed := sum(run.verdict == "unfinished" and run.unanswered not in {"", "timeout"} for run in runs):
        ended = f"{quantity(failed, 'run')} ended in an error of the server"
        yield f"{ended}, which may not be the model's fault, and {'counts' if failed == 1 else 'count'} as not right"
    if found.unjudged:
        why = next(run.why for run in runs if run.verdict == "unjudged")
        yield f"{quantity(found.unjudged, 'run')} left out, because nobody could judge: {why}"
    if found.repeated:
        yield (
            f"{found.repeated} of {quantity(found.runs, 'run')} only repeat another run of the same scenario, as at "
            f"temperature 0, and say nothing new: {found.right.of} count"
        )
    if changed := [name for name, made in column.runs.items() if not all(of_one_task(made[0], run) for run in made)]:
        yield f"scenarios were changed between its runs: {', '.join(changed)}"


def _mixed(report: Findings) -> Iterator[str]:
    bfcl = [name for name, tags in report.scenarios.items() if "bfcl" in tags]
    if bfcl and len(bfcl) < len(report.scenarios):
        yield "BFCL questions and other scenarios are added up here, but are not one suite; report them separately"


def _left_out(report: Findings) -> Iterator[str]:
    """The runs that no comparison counts."""
    for one in report.shown:
        sides = f"{report.columns[one.first].label} and {report.columns[one.second].label}"
        if one.pairing.alone:
            runs = quantity(one.pairing.alone, "run")
            yield f"{sides}: {runs} left out, without a partner of the same scenario and seed"
        if changed := one.pairing.changed:
            names = ", ".join(dict.fromkeys(changed))
            yield f"{sides}: {quantity(len(changed), 'pair')} left out, as the scenario was changed in between: {names}"


def _commits(report: Findings) -> Iterator[str]:
    """Which configurations were run on which commit, where there are several."""
    of = {column.label: {row.commit for runs in column.runs.values() for row in runs} for column in report.columns}
    commits = sorted(set().union(*of.values()))
    if len(commits) > 1:
        yield "the runs are of several commits: a difference may be that of the commits"
        for one in commits:
            yield f"commit {one or 'not known'}: {', '.join(name for name in of if one in of[name])}"


def _method(report: Findings) -> str:
    """How the claims were found, in two sentences."""
    family = report.shown[0].right.family if report.shown else 0
    over = f"over {quantity(family, 'comparison')} that could show anything" if family else _TOO_FEW
    return (
        "Claims compare runs of the same scenario and seed by McNemar's exact test, corrected by Holm's method "
        f"{over}, at a level of {report.alpha:g}. Percentages are Wilson's 95 % intervals: for these scenarios with "
        "other seeds, not for other scenarios."
    )


_TOO_FEW = "(here nothing is corrected: no comparison has enough differing pairs to show anything)"


def _few_seeds(report: Findings) -> str:
    """That no scenario by itself can show a difference, where the seeds are too few for it; else empty."""
    most = max((one.pairs for matchup in report.matchups for one in matchup.scenarios), default=0)
    least = fewest_pairs(report.alpha)
    if not 0 < most < least:
        return ""
    return (
        f"No scenario by itself can show a difference here: with at most {quantity(most, 'pair')} of runs each, even "
        f"{most} to 0 may be chance. It takes at least {least} seeds, and 10 or more are recommended."
    )


# What a report says of how sure its runs were: calibration, and what stopping the least sure would have left.

_COVERAGES = (0.9, 0.75, 0.5)


def _calibration(column: Column) -> Iterator[str]:
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


# A report as Markdown, for a page in a repository.

_MARKS = re.compile(r"[\\`*<>|\[\]&~]|(?<!\w)_|_(?!\w)")
"""Characters that would be formatting; an underscore within a word is none."""


def markdown(report: EvalReport, title: str = "Evals") -> str:
    """The report: what was run, each model's configurations with what they show, then every scenario."""
    return "\n".join(_lines(report, title)) + "\n"


def _lines(report: EvalReport, title: str) -> Iterator[str]:
    yield from (f"# {_text(title)}", "", _text(report.facts) + ".", "", _text(report.method))
    for one in report.models:
        model = _text(one.model)
        yield from ("", f"## {model}", "", *_table(one.metrics), "")
        yield from (f"- {_text(text)}" for text in (*map(str, one.claims), *one.calibration))
        if one.tags:
            yield from ("", f"### Tags with {model}", "", *_table(one.tags))
        yield from ("", f"### Scenarios with {model}", "", *_table(one.scenarios))
    if report.few_seeds:
        yield from ("", _text(report.few_seeds))
    if report.notes:
        yield from ("", "## Notes", "", *(f"- {_text(note)}." for note in report.notes))


def _table(table: Table) -> Iterator[str]:
    heads, *rows = (f"| {' | '.join(map(_text, cells))} |" for cells in (table.headings, *table.rows))
    yield from (heads, f"|---|{'---:|' * (len(table.headings) - 1)}", *rows)


def _text(text: str) -> str:
    """The text without a meaning in Markdown, on one line."""
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", " ".join(text.split()))
