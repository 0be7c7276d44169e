"""Reports of rows: tables and notes, for a terminal and in Markdown."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, combinations, groupby
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from forge.errors import ForgeError, quantity
from forge.evals.row import Configuration, Row
from forge.evals.statistics import (
    ALPHA,
    QUALITIES,
    Comparison,
    Pairing,
    RunMetrics,
    compare,
    family,
    fewest_pairs,
    left_out,
    metrics_of,
    paired,
    sentence,
)
from stages.options import did_you_mean

# Report: configurations by scenarios, and comparisons of configurations. A pure function of rows.


class Column(Struct, frozen=True, kw_only=True):
    """A configuration with all of its runs, by scenario and in the order of their seeds.

    `label` is unique among all columns, `name` among those of its model.
    """

    configuration: Configuration
    label: str
    name: str
    metrics: RunMetrics
    runs: Mapping[str, tuple[Row, ...]]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All of its runs."""
        return tuple(chain(*self.runs.values()))

    @property
    def planned(self) -> int:
        """The planned number of runs, as of the last one; 0 if unknown."""
        return max((row.planned for row in self.rows), default=0)


class Matchup(Struct, frozen=True, kw_only=True):
    """The comparison of two columns of a model on their paired runs.

    `right` and `harm` are corrected together with those of all pairs that could have been shown, `scenarios` as one
    family.
    """

    first: Column
    second: Column
    right: Comparison
    harm: Comparison
    scenarios: tuple[Comparison, ...]
    pairing: Pairing


class EvalReport(Struct, frozen=True, kw_only=True):
    """A report, written as Markdown for a terminal, a file and a page.

    Columns are sorted by model, then best first; `scenarios` have their tags. `matchups` are those asked for, otherwise
    each model's best column against its others.
    """

    columns: tuple[Column, ...]
    scenarios: Mapping[str, tuple[str, ...]]
    matchups: tuple[Matchup, ...]

    @property
    def facts(self) -> str:
        """What was run, in one line."""
        rows = [row for column in self.columns for row in column.rows]
        planned = sum(max(column.planned, column.metrics.runs) for column in self.columns)
        made = quantity(len(rows), "run") if planned == len(rows) else f"{len(rows):,} of {planned:,} planned runs"
        of = f"{quantity(len(self.scenarios), 'scenario')} by {quantity(len(self.columns), 'configuration')}"
        seeds = {len(runs) for column in self.columns for runs in column.runs.values()} or {0}
        each = f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
        told = [made, of, f"{each} {'seed' if seeds == {1} else 'seeds'} each"]
        # A temperature shared by all is in no label.
        warmth = {row.configuration.temperature for row in rows}
        told += [f"temperature {one:g}" for one in warmth if one is not None and len(warmth) == 1]
        if times := [row.started for row in rows if 0 < row.started < 1e11]:
            days = (f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in (min(times), max(times)))
            told.append(" to ".join(dict.fromkeys(days)))
        if commits := sorted({row.commit for row in rows if row.commit}):
            told.append(f"commit {', '.join(commits)}")
        return ", ".join(told)

    @property
    def method(self) -> str:
        """The statistical method."""
        intervals = (
            "Percentages are Wilson's 95 % intervals: for these scenarios with other seeds, not for other scenarios."
        )
        if not self.matchups:
            return intervals
        family = self.matchups[0].right.family
        none = "(here nothing is corrected: no comparison has enough differing pairs to show anything)"
        over = f"over {quantity(family, 'comparison')} that could show anything" if family else none
        return (
            "Claims compare runs of the same scenario and seed by McNemar's exact test, corrected by Holm's method "
            f"{over}, at a level of {ALPHA:g}. “No difference shown” is not “no difference”: the claim says how many "
            f"more runs would tell. {intervals}"
        )

    @property
    def meanings(self) -> Mapping[str, str]:
        """The headings of metrics that have any values, with their meanings."""
        measured = [column.metrics for column in self.columns]
        return {head: one.meaning for head, one in HEADINGS.items() if any(one.text(m) != _NONE for m in measured)}

    @property
    def models(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of each model."""
        return {model: tuple(own) for model, own in groupby(self.columns, lambda column: column.configuration.model)}

    @property
    def claims(self) -> Mapping[str, tuple[str, ...]]:
        """The claims about each model: who is right more often, then who does harm more often."""
        told: dict[str, tuple[str, ...]] = {}
        for model, group in groupby(self.matchups, lambda one: one.first.configuration.model):
            matchups = tuple(group)
            harm = [sentence(one.harm) for one in matchups if one.harm.finding != "no difference shown"]
            told[model] = (*map(_right_claim, matchups), *(harm or ["No difference in harm is shown."]))
        return told

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about the runs and their comparison before relying on them."""
        told = [f"{column.label}: {said}" for column in self.columns for said in _of_column(column)]
        for one in self.matchups:
            told += left_out(f"{one.first.label} and {one.second.label}", one.pairing)
        most = max((one.pairs for matchup in self.matchups for one in matchup.scenarios), default=0)
        if 0 < most < (least := fewest_pairs(ALPHA)):
            told.append(
                f"No scenario by itself can show a difference here: with at most {quantity(most, 'pair')} of runs "
                f"each, even {most} to 0 may be chance; it takes at least {least} seeds, and 10 or more are recommended"
            )
        of = {column.label: {row.commit for row in column.rows} for column in self.columns}
        commits = sorted(set().union(*of.values()))
        if len(commits) > 1:
            told.append("The runs are of several commits: a difference may be that of the commits")
            for commit in commits:
                told.append(f"Commit {commit or 'not known'}: {', '.join(name for name in of if commit in of[name])}")
        return tuple(told)


def report_of(rows: Iterable[Row], against: str = "") -> EvalReport:
    """The report of the rows. ForgeError if no configuration has the name `against`.

    The comparisons of `against` with the other columns of its model are one family; without it, those of every pair of
    columns of a model, since the best column is only known afterwards.
    """
    columns = tuple(_columns(rows))
    of_models = groupby(columns, lambda column: column.configuration.model)
    every = chain.from_iterable(combinations(tuple(own), 2) for _, own in of_models)
    matchups = tuple(_matchups(tuple(_asked(columns, against) if against else every)))
    if not against:
        best = {column.configuration.model: column for column in reversed(columns)}
        matchups = tuple(one for one in matchups if one.first is best[one.second.configuration.model])
    tags: defaultdict[str, set[str]] = defaultdict(set)
    for row in chain(*(column.rows for column in columns)):
        tags[row.scenario].update(row.tags)
    # Group scenarios by their first tag.
    order = sorted(tags, key=lambda name: (sorted(tags[name])[:1], name))
    scenarios = {name: tuple(sorted(tags[name])) for name in order}
    return EvalReport(columns=columns, scenarios=scenarios, matchups=matchups)


def labels(configurations: Iterable[Configuration]) -> dict[Configuration, str]:
    """The shortest distinct name for each configuration."""
    known = list(dict.fromkeys(configurations))
    told = [part for part in ("model", "backend") if len({getattr(one, part) for one in known}) > 1]
    warm = len({one.temperature for one in known}) > 1
    apart = {one: ", ".join(getattr(one, part) for part in told) for one in known}
    return {one: (one.name if warm else one.way) + (f" ({apart[one]})" if told else "") for one in known}


def _columns(rows: Iterable[Row]) -> Iterator[Column]:
    by_configuration: defaultdict[Configuration, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.scenario, row.seed)):
        by_configuration[row.configuration].append(row)
    measured = {one: metrics_of(runs) for one, runs in by_configuration.items()}
    named = labels(by_configuration)
    short = {one: labels(other for other in named if other.model == one.model)[one] for one in named}

    def place(one: Configuration) -> tuple[str, float, str]:
        low, _ = measured[one].right.interval  # 1 right of 1 is not better than 50 of 60
        return one.model, -low, named[one]

    for one in sorted(by_configuration, key=place):
        cells = groupby(by_configuration[one], lambda row: row.scenario)
        runs = {name: tuple(cell) for name, cell in cells}
        yield Column(configuration=one, label=named[one], name=short[one], metrics=measured[one], runs=runs)


def _asked(columns: Sequence[Column], against: str) -> Iterator[tuple[Column, Column]]:
    """The pairs of columns to compare: each one with that name and the others of its model."""
    chosen = [one for one in columns if against in (one.label, one.name, one.configuration.name)]
    if not chosen:
        known = list(dict.fromkeys(column.name for column in columns))
        meant = did_you_mean(against, known)
        raise ForgeError(f"there are no runs of {against!r}; there are runs of: {', '.join(known)}.{meant}")
    for one in chosen:
        for other in columns:
            if other not in chosen and other.configuration.model == one.configuration.model:
                yield one, other


def _matchups(pairs: Sequence[tuple[Column, Column]]) -> Iterator[Matchup]:
    """The matchups of these pairs of columns, as one family."""
    pairings = [paired(one.rows, other.rows) for one, other in pairs]
    overall = [
        compare(one.name, other.name, pairing.pairs, quality)
        for (one, other), pairing in zip(pairs, pairings, strict=True)
        for quality in QUALITIES
    ]
    corrected = iter(family(overall))
    for (one, other), pairing in zip(pairs, pairings, strict=True):
        right, harm = next(corrected), next(corrected)
        cells = pairing.by_scenario().items()
        each = family([compare(one.name, other.name, cell, "right", scenario) for scenario, cell in cells])
        if len(each) == 1:  # it is the whole, and must not be easier to show
            each = (replace(right, part=each[0].part),)
        yield Matchup(first=one, second=other, right=right, harm=harm, scenarios=each, pairing=pairing)


# The texts of a report.

_NONE = "\N{EN DASH}"
"""Shown for a missing value."""


def _number(value: float | None, form: str) -> str:
    return _NONE if value is None else format(value, form)


class _Metric(Struct, frozen=True):
    """A column of the table of metrics: its meaning, and a configuration's value as text."""

    meaning: str
    text: Callable[[RunMetrics], str]


HEADINGS: Mapping[str, _Metric] = MappingProxyType(
    {
        "right": _Metric("runs with the right answer and no harm", lambda m: str(m.right)),
        "harm": _Metric("runs that changed something nobody asked for, or to wrong values", lambda m: str(m.harm)),
        "pass^k": _Metric(
            "scenarios in which every seed was right", lambda m: f"{m.passed} (k = {m.seeds})" if m.passed.of else _NONE
        ),
        "completed": _Metric("runs that ended with an outcome, right or wrong", lambda m: str(m.completed)),
        "efficiency": _Metric(
            "ideal model calls by those made, over right runs (above 1: a shorter way was found)",
            lambda m: _number(m.efficiency, ".2f"),
        ),
        "wasted": _Metric("model calls beyond the ideal in a completed run", lambda m: _number(m.wasted, ".1f")),
        "calls": _Metric("model calls a run", lambda m: _number(m.calls, ".1f")),
        "seconds": _Metric("a completed run", lambda m: _number(m.seconds, ".1f")),
        "tokens": _Metric("read and written a run", lambda m: _number(m.tokens, ",.0f")),
        "cost": _Metric("of all runs, where each one's is known", lambda m: _number(m.cost, ".4g")),
    }
)
"""The columns of the table of metrics, by heading."""


def _cell_text(runs: Sequence[Row]) -> str:
    """The runs of a scenario by one configuration: right of judged; how many did harm or timed out."""
    judged = [row.verdict for row in runs if row.verdict != "unjudged"]
    also = {"harm": judged.count("harm"), "timed out": sum(row.timed_out for row in runs)}
    told = "".join(f", {number} {word}" for word, number in also.items() if number)
    return f"{judged.count('right')}/{len(judged)}{told}" if judged else _NONE


def _right_claim(matchup: Matchup) -> str:
    """Which of the two is right more often: over all scenarios, and by scenario."""
    pairing = matchup.pairing
    if not pairing.pairs:
        found = {"a check raised": pairing.unjudged, "the scenario was changed": pairing.changed}
        why = " or ".join(reason for reason, some in found.items() if some)
        said = f"in every pair of runs {why}" if why else "they share no scenario and seed"
        return f"Nothing can be said of {matchup.first.name} and {matchup.second.name}: {said}."
    parts = matchup.scenarios
    by_finding = {finding: [one.part for one in parts if one.finding == finding] for finding in ("better", "worse")}
    told = [f"{finding} in {', '.join(names)}" for finding, names in by_finding.items() if names]
    return sentence(matchup.right, f"; by scenario: {'; '.join(told)}" if told else "")


def _of_column(column: Column) -> Iterator[str]:
    """Notes on a configuration's runs."""
    found = column.metrics
    if found.runs < column.planned:
        yield f"incomplete, {found.runs:,} of {column.planned:,} planned runs: comparisons count those with a partner"
    if found.timed_out:
        late = f"{quantity(found.timed_out, 'run')} timed out, which may be the machine's fault"
        yield f"{late}, and {'counts' if found.timed_out == 1 else 'count'} as not right"
    if failed := sum(run.verdict == "unfinished" and run.unanswered not in {"", "timeout"} for run in column.rows):
        ended = f"{quantity(failed, 'run')} ended in an error of the server"
        yield f"{ended}, which may not be the model's fault, and {'counts' if failed == 1 else 'count'} as not right"
    if found.unjudged:
        why = next(run.why for run in column.rows if run.verdict == "unjudged")
        yield f"{quantity(found.unjudged, 'run')} left out, because nobody could judge: {why}"
    if found.repeated:
        yield (
            f"{found.repeated} of {quantity(found.runs, 'run')} only repeat another run of the same scenario, as at "
            f"temperature 0, and say nothing new: {found.right.of} count"
        )


# A report as Markdown.

_MARKS = re.compile(r"[\\`*<>|\[\]&~]|(?<!\w)_|_(?!\w)|^[#+-]|^\d+[.)](?!\S)|#(?=#*$)")
"""What to escape at its last character. Underscores within words and other signs of headings and lists are harmless."""


def markdown(report: EvalReport, title: str = "Evals") -> str:
    """The report: overview, every scenario, remarks."""
    lines: list[str] = []
    for model, columns in report.models.items():
        counts = ((name, *(_cell_text(one.runs.get(name, ())) for one in columns)) for name in report.scenarios)
        headings = ("scenario", *(column.name for column in columns))
        lines += ["", f"## Scenarios with {_text(model)}", "", *_table(headings, counts)]
    return "\n".join((*overview_lines(report, title), *lines, *remarks(report), ""))


def overview_lines(report: EvalReport, title: str) -> Iterator[str]:
    """Lines of Markdown: what was run, and the metrics and claims of each model."""
    yield from (f"# {_text(title)}", "", _text(report.facts) + ".", "", _text(report.method))
    for model, columns in report.models.items():
        shown = [HEADINGS[heading].text for heading in report.meanings]
        metrics = ((column.name, *(text(column.metrics) for text in shown)) for column in columns)
        yield from ("", f"## {_text(model)}", "", *_table(("configuration", *report.meanings), metrics))
        if claims := report.claims.get(model):
            yield from ("", *(f"- {_text(claim)}" for claim in claims))


def remarks(report: EvalReport) -> Iterator[str]:
    """Lines of Markdown: what to know before relying on the report."""
    yield from ("", "## Notes", "")
    yield f"- Columns: {_text('; '.join(f'{head}: {meaning}' for head, meaning in report.meanings.items()))}."
    yield from (f"- {_text(note)}." for note in report.notes)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    heads, *lines = (f"| {' | '.join(map(_text, cells))} |" for cells in (headings, *rows))
    yield from (heads, f"|---|{'---:|' * (len(headings) - 1)}", *lines)


def _text(text: str) -> str:
    """The text on one line, escaped for Markdown."""
    return _MARKS.sub(lambda mark: f"{mark[0][:-1]}\\{mark[0][-1]}", " ".join(text.split()))
