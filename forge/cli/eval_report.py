"""`forge eval report`: what files of results show, as a table, as Markdown, or as a page."""

import argparse
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from forge.cli.console import Console
from forge.cli.eval_results import shown_rows
from forge.cli.eval_timelines import worst_timelines
from forge.cli.html_page import save_page, without_folders
from forge.errors import ForgeError
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

_BETWEEN = 2
"""Blanks between two columns of a table."""

_WIDE = 250
"""Columns of a table in a pipe, where nobody's screen is too narrow."""


def run_report(options: argparse.Namespace) -> int:
    """Print the report, or write its page. ForgeError if the page would replace one of the files."""
    if options.html and options.html.resolve() in {file.resolve() for file in options.files}:
        raise ForgeError(f"the page would replace the results in {options.html}; name another file with --html")
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
        for part in _parts(report_of(rows, options.against, options.alpha), console.width):
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


def _parts(made: EvalReport, width: int) -> Iterator[RenderableType]:
    """The report, part by part, for so many columns of a terminal."""
    said = dict(claims(made))
    yield Text(facts(made))
    for model, columns in by_model(made):
        yield Text(f"\n{model}", style="bold")
        cells = {name: [of.runs.get(name, ()) for _, of in columns] for name in made.scenarios}
        names = [column.name for _, column in columns]
        numbers = [str(number) for number in range(1, len(names) + 1)] if _needs(cells, names) > width else []
        yield _metrics(made, columns, numbers)
        for claim in said.get(model, ()):
            colour = {"better": "green", "worse": "red"}.get(claim.finding, "")
            yield Text.assemble(("- ", "dim"), (claim.headline, colour), str(claim)[len(claim.headline) :])
        for _, column in columns:
            for sentence in calibration_texts(column):
                yield Text.assemble(("- ", "dim"), sentence)
        yield Text()
        yield _cells("scenario", cells, numbers or names)
        if made.tags:
            yield Text()
            yield _cells("tag", {tag: [of.tagged(tag) for _, of in columns] for tag in made.tags}, numbers or names)
    if few := few_seeds(made):
        yield Text(f"\n{few}")
    for note in notes(made):
        yield Text(f"note: {note}", style="yellow")
    yield Text(f"\n{method(made)}", style="dim")


def _needs(cells: Mapping[str, Sequence[Sequence[Row]]], names: Sequence[str]) -> int:
    """The columns of a terminal that the table of the scenarios needs with these headings."""
    texts = [[cell_text(cell) for cell in row] for row in cells.values()]
    widths = [max(map(len, (name, *column))) for name, *column in zip(names, *texts, strict=True)]
    return max(map(len, cells)) + sum(width + _BETWEEN for width in widths)


def _metrics(made: EvalReport, columns: list[tuple[int, Column]], numbers: list[str]) -> Table:
    """The metrics of each configuration; with its number, where the tables below have that in place of its name."""
    told = told_metrics(made)
    table = _table("configuration", *(HEADINGS[number][0] for number in told))
    for (_, column), number in zip(columns, numbers or [""] * len(columns), strict=True):
        texts = metric_texts(column.metrics)
        table.add_row(Text(f"{number} {column.name}".strip()), *(Text(texts[number]) for number in told))
    return table


def _cells(kind: str, rows: Mapping[str, Sequence[Sequence[Row]]], headings: Sequence[str]) -> Table:
    """The counts of each scenario, or tag, by configuration."""
    table = _table(kind, *headings)
    for name, cells in rows.items():
        texts = [cell_text(cell) for cell in cells]
        table.add_row(Text(name), *(Text(text, style="red" if "harm" in text else "") for text in texts))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _BETWEEN, 0, 0))
    table.add_column(Text(first), no_wrap=True, overflow="fold")
    for heading in others:
        table.add_column(Text(heading), justify="right")
    return table
