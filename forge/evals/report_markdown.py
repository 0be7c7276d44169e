"""A report as Markdown, for a page in a repository."""

import re
from collections.abc import Iterable, Iterator, Sequence

from forge.evals.report import Column, EvalReport
from forge.evals.report_calibration import calibration_texts
from forge.evals.report_notes import few_seeds, method, notes
from forge.evals.report_texts import (
    HEADINGS,
    by_model,
    cell_text,
    claims,
    facts,
    metric_texts,
    told_metrics,
)

_Columns = Sequence[tuple[int, Column]]

_MARKS = re.compile(r"[\\`*<>|\[\]&~]|(?<!\w)_|_(?!\w)")
"""Characters that would be formatting; an underscore within a word is none."""


def markdown(report: EvalReport, title: str = "Evals") -> str:
    """The report: what was run, each model's configurations with what they show, then every scenario."""
    return "\n".join(_lines(report, title)) + "\n"


def _lines(report: EvalReport, title: str) -> Iterator[str]:
    yield from (f"# {_text(title)}", "", _text(facts(report)) + ".")
    yield ""
    yield _text(method(report))
    said, told = dict(claims(report)), told_metrics(report)
    for model, columns in by_model(report):
        yield from ("", f"## {_text(model)}", "")
        yield from _table(("configuration", *(HEADINGS[number][0] for number in told)), _metrics(columns, told))
        yield from ("", *(f"- {_text(str(claim))}" for claim in said.get(model, ())))
        yield from (f"- {_text(text)}" for _, column in columns for text in calibration_texts(column))
        if report.tags:
            yield from ("", f"### Tags with {_text(model)}", "")
            heads = ("tag", *(_text(column.name) for _, column in columns))
            yield from _table(heads, (_tag(tag, columns) for tag in report.tags))
        yield from ("", f"### Scenarios with {_text(model)}", "")
        heads = ("scenario", *(_text(column.name) for _, column in columns))
        yield from _table(heads, (_scenario(name, columns) for name in report.scenarios))
    if few := few_seeds(report):
        yield from ("", _text(few))
    if known := list(notes(report)):
        yield from ("", "## Notes", "", *(f"- {_text(note)}." for note in known))


def _metrics(columns: _Columns, told: Sequence[int]) -> Iterator[tuple[str, ...]]:
    for _, column in columns:
        texts = metric_texts(column.metrics)
        yield (_text(column.name), *(texts[number] for number in told))


def _scenario(name: str, columns: _Columns) -> tuple[str, ...]:
    return (_text(name), *(cell_text(column.runs.get(name, ())) for _, column in columns))


def _tag(tag: str, columns: _Columns) -> tuple[str, ...]:
    return (_text(tag), *(cell_text(column.tagged(tag)) for _, column in columns))


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'---:|' * (len(heads) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _text(text: str) -> str:
    """The text without a meaning in Markdown, on one line."""
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", " ".join(text.split()))
