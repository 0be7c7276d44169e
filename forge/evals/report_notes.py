"""Notes of a report: what a reader has to know of its runs, and of how they were compared, before relying on it."""

from collections.abc import Iterator

from forge.errors import quantity
from forge.evals.report import Column, EvalReport
from forge.evals.row import of_one_task
from forge.evals.significance import fewest_pairs


def notes(report: EvalReport) -> Iterator[str]:
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


def _mixed(report: EvalReport) -> Iterator[str]:
    bfcl = [name for name, tags in report.scenarios.items() if "bfcl" in tags]
    if bfcl and len(bfcl) < len(report.scenarios):
        yield "BFCL questions and other scenarios are added up here, but are not one suite; report them separately"


def _left_out(report: EvalReport) -> Iterator[str]:
    """The runs that no comparison counts."""
    for one in report.shown:
        sides = f"{report.columns[one.first].label} and {report.columns[one.second].label}"
        if one.pairing.alone:
            runs = quantity(one.pairing.alone, "run")
            yield f"{sides}: {runs} left out, without a partner of the same scenario and seed"
        if changed := one.pairing.changed:
            names = ", ".join(dict.fromkeys(changed))
            yield f"{sides}: {quantity(len(changed), 'pair')} left out, as the scenario was changed in between: {names}"


def _commits(report: EvalReport) -> Iterator[str]:
    """Which configurations were run on which commit, where there are several."""
    of = {column.label: {row.commit for runs in column.runs.values() for row in runs} for column in report.columns}
    commits = sorted(set().union(*of.values()))
    if len(commits) > 1:
        yield "the runs are of several commits: a difference may be that of the commits"
        for one in commits:
            yield f"commit {one or 'not known'}: {', '.join(name for name in of if one in of[name])}"


def method(report: EvalReport) -> str:
    """How the claims were found, in two sentences."""
    family = report.shown[0].right.family if report.shown else 0
    over = f"over {quantity(family, 'comparison')} that could show anything" if family else _TOO_FEW
    return (
        "Claims compare runs of the same scenario and seed by McNemar's exact test, corrected by Holm's method "
        f"{over}, at a level of {report.alpha:g}. Percentages are Wilson's 95 % intervals: for these scenarios with "
        "other seeds, not for other scenarios."
    )


_TOO_FEW = "(here nothing is corrected: no comparison has enough differing pairs to show anything)"


def few_seeds(report: EvalReport) -> str:
    """That no scenario by itself can show a difference, where the seeds are too few for it; else empty."""
    most = max((one.pairs for matchup in report.matchups for one in matchup.scenarios), default=0)
    least = fewest_pairs(report.alpha)
    if not 0 < most < least:
        return ""
    return (
        f"No scenario by itself can show a difference here: with at most {quantity(most, 'pair')} of runs each, even "
        f"{most} to 0 may be chance. It takes at least {least} seeds, and 10 or more are recommended."
    )
