"""`forge eval report`: what files of results show, as a table, as Markdown, or as a page."""

import argparse
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from rich.console import RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from forge.cli.console import Console
from forge.cli.eval_results import shown_rows
from forge.cli.eval_timelines import worst_timelines
from forge.cli.html_page import save_page, without_folders
from forge.evals.report import Column, EvalReport, report_of
from forge.evals.report_calibration import calibration_texts
from forge.evals.report_markdown import markdown
from forge.evals.report_notes import few_seeds, method, notes
from forge.evals.report_page import page_of
from forge.evals.report_texts import (
    HEADINGS,
    by_model,
    cell_text,
    claims,
    facts,
    metric_texts,
    told_metrics,
)
from forge.evals.row import Row

_WIDE = 250
"""Columns of a table in a pipe, where nobody's screen is too narrow."""


_UNBOUNDED = 100_000
"""Columns that any table fits into."""


def run_report(options: argparse.Namespace) -> int:
    """Print the report, or write its page."""
    rows = shown_rows(options.files)
    if options.html:
        content = _page(rows, options)
        save_page(options.html, content)
        Console(highlight=False).print(f"written: {options.html}", markup=False, soft_wrap=True)
    elif options.markdown:
        print(markdown(report_of(rows, options.against, options.alpha), options.title or "Evals"), end="")
    else:
        console = Console(highlight=False)
        console = console if console.is_terminal else Console(highlight=False, width=_WIDE)
        for part in _parts(report_of(rows, options.against, options.alpha), console):
            console.print(part, soft_wrap=isinstance(part, Text) and not console.is_terminal)
    return 0


def _page(rows: Sequence[Row], options: argparse.Namespace) -> str:
    """The page, without the folders of this machine: pages are shared."""
    found = worst_timelines(rows, options.timelines * 1024 * 1024)
    hidden = [
        replace(row, why=without_folders(row.why), journals=tuple(map(without_folders, row.journals))) for row in rows
    ]
    made = report_of(hidden, options.against, options.alpha)
    title = options.title or f"Evals: {', '.join(model for model, _ in by_model(made))}"
    return page_of(made, {without_folders(journal): sections for journal, sections in found.items()}, title)


def _parts(made: EvalReport, console: Console) -> Iterator[RenderableType]:
    """The report, part by part. Where names do not fit beside one another, configurations have numbers."""
    said = dict(claims(made))
    yield Text(facts(made))
    for model, columns in by_model(made):
        yield Text(f"\n{model}", style="bold")
        names = [column.name for _, column in columns]
        tables = list(_counts(made, columns, names))
        if all(_fits(one, console) for one in tables):
            metrics = _metrics(made, columns)
            yield from (metrics,) if _fits(metrics, console) else _metric_lines(made, columns, names)
        else:
            numbers = [str(number) for number in range(1, len(names) + 1)]
            tables = list(_counts(made, columns, numbers))
            numbered = [f"{number} {name}" for number, name in zip(numbers, names, strict=True)]
            yield from _metric_lines(made, columns, numbered)
        for claim in said.get(model, ()):
            colour = {"better": "green", "worse": "red"}.get(claim.finding, "")
            yield Text.assemble(("- ", "dim"), (claim.headline, colour), str(claim)[len(claim.headline) :])
        for _, column in columns:
            for sentence in calibration_texts(column):
                yield Text.assemble(("- ", "dim"), sentence)
        for table in tables:
            yield Text()
            yield table
    if few := few_seeds(made):
        yield Text(f"\n{few}")
    for note in notes(made):
        yield Text(f"note: {note}", style="yellow")
    yield Text(f"\n{method(made)}", style="dim")


def _fits(table: Table, console: Console) -> bool:
    """Whether the table has room without a line that is folded."""
    unbounded = console.options.update(max_width=_UNBOUNDED)
    return Measurement.get(console, unbounded, table).maximum <= console.width


def _metrics(made: EvalReport, columns: list[tuple[int, Column]]) -> Table:
    told = told_metrics(made)
    table = _table("configuration", *(HEADINGS[number][0] for number in told))
    for _, column in columns:
        texts = metric_texts(column.metrics)
        table.add_row(Text(column.name), *(Text(texts[number]) for number in told))
    return table


def _metric_lines(made: EvalReport, columns: list[tuple[int, Column]], names: Sequence[str]) -> Iterator[Text]:
    """The same for a narrow terminal."""
    told = told_metrics(made)
    for (_, column), name in zip(columns, names, strict=True):
        texts = metric_texts(column.metrics)
        values = "; ".join(f"{HEADINGS[number][0]} {texts[number]}" for number in told)
        yield Text.assemble((name, "bold"), f": {values}")


def _counts(made: EvalReport, columns: list[tuple[int, Column]], headings: Sequence[str]) -> Iterator[Table]:
    """The counts of each scenario by configuration, and of each tag."""
    scenarios = {name: [of.runs.get(name, ()) for _, of in columns] for name in made.scenarios}
    yield _cells("scenario", scenarios, headings)
    if made.tags:
        yield _cells("tag", {tag: [of.tagged(tag) for _, of in columns] for tag in made.tags}, headings)


def _cells(kind: str, rows: Mapping[str, Sequence[Sequence[Row]]], headings: Sequence[str]) -> Table:
    """The counts of each scenario, or tag, by configuration."""
    table = _table(kind, *headings)
    for name, cells in rows.items():
        texts = [cell_text(cell) for cell in cells]
        table.add_row(Text(name), *(Text(text, style="red" if "harm" in text else "") for text in texts))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(Text(first), no_wrap=True, overflow="fold")
    for heading in others:
        table.add_column(Text(heading), justify="right")
    return table
