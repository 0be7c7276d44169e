"""The texts of a report, the same in a terminal, in Markdown and on a page."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from msgspec import Struct

from forge.errors import quantity
from forge.evals.comparison import Comparison, Direction, basis, headline
from forge.evals.metrics import Metrics
from forge.evals.report import Column, EvalReport, Matchup
from forge.evals.row import Row

NONE = "\N{EN DASH}"
"""What stands where there is nothing to tell."""


def facts(report: EvalReport) -> str:
    """What was run, in a line."""
    rows = [row for column in report.columns for runs in column.runs.values() for row in runs]
    seeds = {len(runs) for column in report.columns for runs in column.runs.values()}
    commits = sorted({row.commit for row in rows if row.commit})
    of = f"{quantity(len(report.scenarios), 'scenario')} by {quantity(len(report.columns), 'configuration')}"
    each = f"{_range(seeds)} {'seed' if seeds == {1} else 'seeds'} each"
    made = (f"commit {', '.join(commits)}",) if commits else ()
    return ", ".join((_made(report, len(rows)), of, each, *_temperature(rows), *_days(rows), *made))


def _made(report: EvalReport, runs: int) -> str:
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


HEADINGS = (
    ("right", "runs with the right answer and no harm, with Wilson's 95 % interval"),
    ("harm", "runs that changed something nobody asked for, or to wrong values"),
    ("pass^k", "scenarios in which every seed was right"),
    ("completed", "runs that ended with an outcome, right or wrong"),
    ("efficiency", "ideal model calls by those made, over right runs; above 1: a shorter way was found"),
    ("wasted", "model calls beyond the ideal in a completed run"),
    ("calls", "model calls a run"),
    ("seconds", "a completed run"),
    ("tokens", "read and written a run"),
    ("cost", "of all runs, where each one's is known"),
)
"""The columns of the table of metrics, and what they mean."""


def metric_texts(found: Metrics) -> tuple[str, ...]:
    """A configuration's metrics, as the columns of `HEADINGS`."""
    return (
        str(found.right),
        str(found.harm),
        f"{found.passed} (k = {found.seeds})" if found.passed.of else NONE,
        str(found.completed),
        _number(found.efficiency, ".2f"),
        _number(found.wasted, ".1f"),
        _number(found.calls, ".1f"),
        _number(found.seconds, ".1f"),
        _number(found.tokens, ",.0f"),
        _number(found.cost, ".4g"),
    )


def _number(value: float | None, form: str) -> str:
    return NONE if value is None else format(value, form)


def told_metrics(report: EvalReport) -> list[int]:
    """The numbers of the columns of `HEADINGS` in which there is anything to tell."""
    texts = [metric_texts(column.metrics) for column in report.columns]
    return [number for number in range(len(HEADINGS)) if any(text[number] != NONE for text in texts)]


def cell_text(runs: Sequence[Row]) -> str:
    """The runs of a scenario, or of a tag, by one configuration: right of judged; how many did harm, or timed out."""
    judged = [row.verdict for row in runs if row.verdict != "unjudged"]
    also = {"harm": judged.count("harm"), "timed out": sum(row.timed_out for row in runs)}
    told = "".join(f", {number} {word}" for word, number in also.items() if number)
    return f"{judged.count('right')}/{len(judged)}{told}" if judged else NONE


def by_model(report: EvalReport) -> Iterator[tuple[str, list[tuple[int, Column]]]]:
    """The columns of each model, with their numbers."""
    for model, columns in groupby(enumerate(report.columns), lambda column: column[1].configuration.model):
        yield model, list(columns)


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


def claims(report: EvalReport) -> Iterator[tuple[str, list[Conclusion]]]:
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
