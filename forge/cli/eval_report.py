"""`forge eval report` and `check`: rows of results as text, Markdown and a page, with timelines."""

import argparse
import asyncio
import glob
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace
from rich import table as rich_table
from rich.console import RenderableType
from rich.measure import Measurement
from rich.text import Text

from forge.agent import Agent
from forge.cli.console import Console, printable, readable
from forge.cli.eval_run import values_of
from forge.cli.layout import LabelledText
from forge.cli.run import imported, load_served
from forge.cli.timelines import recorded_timeline, save_page, without_folders
from forge.errors import ForgeError, JournalError
from forge.evals.check import check_against
from forge.evals.configurations import Cell, configured_workflow
from forge.evals.evaluation import Axes
from forge.evals.report import EvalReport, OfModel, Table, markdown, report_of
from forge.evals.report_page import TimelineSection, page_of
from forge.evals.results import read_results, refuse_repeated, rows_with
from forge.evals.row import Row
from forge.evals.scenario import Scenario
from forge.evals.series import made_world
from forge.evals.statistics import sentence
from forge.evals.suite import SUITES
from forge.journal.records import read_journal
from forge.workflow.workflow import Workflow

# Files of results as a command line names them: read, merged, and safe to show.

_MOST_CONFIGURATIONS = 256
"""Each is compared with each other one: what that takes grows with their square."""


def shown_rows(files: Sequence[Path]) -> tuple[Row, ...]:
    """The rows of all the files, their texts fit to be shown. ForgeError if there are none, or one is there twice.

    Journals are named by paths from here; those that are not beside their file of results are left out.
    """
    rows = tuple(row for file in files for row in _shown(file))
    names = " and ".join(map(str, files))
    if not rows:
        raise ForgeError(f"there are no runs in {names}; forge eval run writes them")
    refuse_repeated(rows, names)
    if (several := len({row.configuration for row in rows})) > _MOST_CONFIGURATIONS:
        raise ForgeError(f"{names} have {several} configurations; at most {_MOST_CONFIGURATIONS} can be compared")
    return rows


def _shown(file: Path) -> Iterator[Row]:
    """The rows with no text that could control a terminal or is longer than a line or two."""
    folder = file.parent.resolve()
    for row in read_results(file):
        known = row.configuration
        texts = {name: printable(value) for name, value in structs.asdict(known).items() if isinstance(value, str)}
        # A file of results may come from anybody: journals lie in a folder of journals beside it, or are left out.
        paths = [(folder / journal).resolve() for journal in row.journals]
        beside = all(path.is_relative_to(folder) and _in_journals(path.relative_to(folder)) for path in paths)
        yield replace(
            row,
            configuration=replace(known, **texts),
            scenario=printable(row.scenario),
            tags=tuple(map(printable, row.tags)),
            why=printable(row.why),
            end=printable(row.end),
            commit=printable(row.commit),
            journals=tuple(str(file.parent / journal) for journal in row.journals) if beside else (),
        )


def _in_journals(path: Path) -> bool:
    return path.as_posix().partition("/")[0].endswith(".journals")


# Journals of evals: the run that one belongs to, how it was judged, and the workflow that replays it.

_SUITE = "suite"
"""What `--workflow` calls forge's own scenarios."""

_SECONDS = 60.0
"""Maximum time for a scenario to make its world."""


def recorded_row(journal: Path) -> Row | None:
    """The row of the run that the journal belongs to; None where no file of results beside its folder has it."""
    whole = journal.absolute()
    folder = next((one for one in whole.parents if one.name.endswith(".journals")), None)
    if folder is None:
        return None
    name = whole.relative_to(folder).as_posix()
    stem = folder.name.removesuffix(".journals")
    files = (one for one in folder.parent.glob(f"{glob.escape(stem)}*") if one.stem == stem and one.is_file())
    found = (row for file in files for row in rows_with(file, name))
    return next((row for row in found if any(one.partition("/")[2] == name for one in row.journals)), None)


def judged_run(journal: Path) -> tuple[LabelledText | Text, ...]:
    """What the run of that journal was, how it ended, and how it was judged; nothing where it was not an eval's."""
    row = recorded_row(journal)
    if row is None:
        return ()
    why = f": {printable(row.why)}" if row.why else ""
    return (
        Text(f"scenario {printable(row.scenario)}, seed {row.seed}, {printable(row.configuration.name)}", style="bold"),
        LabelledText("ended", printable(row.end)),
        LabelledText("verdict", f"{row.verdict}{why}"),
    )


def workflow_of(reference: str, journal: Path) -> Workflow:
    """The workflow that `--workflow` names; for an eval's journal, the run's own, from a file with its scenario.

    `suite` stands for forge's own scenarios, FILE.py:NAME always for a workflow of that name. ForgeError for a run
    that was not forge's, and for what is not there.
    """
    row = recorded_row(journal) if reference == _SUITE or reference.endswith(".py") else None
    if row is None and reference == _SUITE:
        raise ForgeError(f"{journal} is not a journal of an eval beside its results; name a workflow instead")
    scenario = _scenario(reference, row) if row else None
    if row is None or scenario is None:
        served = load_served(reference)
        return served.workflow if isinstance(served, Agent) else served
    return _configured(scenario, row)


def _scenario(reference: str, row: Row) -> Scenario | None:
    """The run's scenario in the suite, or in the file; None for a file without it."""
    if reference != _SUITE:
        own = values_of(vars(imported(reference, "FILE.py")), Scenario)
        return next((one for one in own if one.name == row.scenario), None)
    if "bfcl" in row.tags:
        raise ForgeError("questions of BFCL are not replayed with a workflow; leave it out to see what was recorded")
    known = {scenario.name: scenario for scenario in SUITES["all"]}
    if row.scenario not in known:
        name = printable(row.scenario)
        raise ForgeError(f"forge's suite has no scenario {name!r}; name the file that has it: --workflow FILE.py")
    return known[row.scenario]


def _configured(scenario: Scenario, row: Row) -> Workflow[Any]:
    known = row.configuration
    if known.player != "forge":
        raise ForgeError(
            f"the run was made by {printable(known.player)}, not by forge, so no workflow reproduces its states; "
            "leave out --workflow to see what was recorded"
        )
    if known.unsure.startswith("priors:"):
        raise ForgeError("a run with priors is not replayed: the record does not have them")
    Axes(ablations=(known.ablation,), compacts=(known.compact,), unsures=(known.unsure,))  # refuses what is unknown
    cell = Cell(configuration=known, scenario=scenario, seed=row.seed)
    try:
        world = asyncio.run(made_world(cell, _SECONDS, asyncio.Lock()))
    except Exception as error:
        raise ForgeError(f"the scenario {scenario.name} raised {type(error).__name__}: {error}") from error
    return configured_workflow(world.workflow, known)


# The timelines that a report's page holds: those of the worst runs first, as many as there is room for.

_WORST_FIRST = ("harm", "wrong", "unfinished", "unjudged", "right")

_LONGEST_TEXT = 3_000
"""Maximum characters of one text."""

_LONGEST, _TIMELINES = 100_000, 4 * 1024 * 1024
"""Maximum bytes of one timeline, and of all on a page."""


def worst_timelines(rows: Iterable[Row], room: int) -> dict[str, tuple[TimelineSection, ...]]:
    """The timelines of these runs by their first journals, in no more than `room` bytes.

    Of each scenario and configuration the worst run comes first, then the next. Runs whose journals are gone, or are
    none of forge's, have none.
    """
    cells: defaultdict[object, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (_WORST_FIRST.index(row.verdict), row.seed)):
        if row.journals:
            cells[row.configuration, row.scenario].append(row)
    placed = [(place, row) for cell in cells.values() for place, row in enumerate(cell)]
    found: dict[str, tuple[TimelineSection, ...]] = {}
    for _, row in sorted(placed, key=lambda one: (one[0], _WORST_FIRST.index(one[1].verdict))):
        made = _timeline(row)
        size = len(msgspec.json.encode(made))
        if not made or size > _LONGEST:
            continue
        room -= size
        if room < 0:
            break
        found[row.journals[0]] = made
    return found


def _timeline(row: Row) -> tuple[TimelineSection, ...]:
    """The run's timeline, its messages one after the other; empty if a journal cannot be read."""
    made: list[TimelineSection] = []
    for number, journal in enumerate(row.journals, start=1):
        try:
            sections = recorded_timeline(read_journal(Path(journal)))
        except JournalError:
            return ()
        of = f", message {number}" if len(row.journals) > 1 else ""
        for section in sections:
            items = tuple((item.label, _cut(item.text)) for item in section.items)
            made.append((f"{section.title}{of}", section.note, items))
    return tuple(made)


def _cut(text: str) -> str:
    more = len(text) - _LONGEST_TEXT
    return readable(without_folders(text[:_LONGEST_TEXT])) + (f"… ({more:,} characters more)" if more > 0 else "")


# `forge eval check`: whether new results are significantly worse than a baseline; 1 if they are.

_COLOURS = {"better": "green", "worse": "red"}


def run_check(options: argparse.Namespace) -> int:
    """Compare two files of results, and say what has changed."""
    checked = check_against(
        shown_rows([options.file]),
        shown_rows([options.against]),
        name=options.configuration,
        baseline_name=options.baseline_configuration,
        alpha=options.alpha,
    )
    console = Console(highlight=False)
    for one in checked.told:
        console.print(Text(sentence(one), style=_COLOURS.get(one.finding, "")), soft_wrap=True)
    for note in checked.notes:
        console.print(Text(f"note: {note}", style="yellow"), soft_wrap=True)
    lost = "1 significant loss" if len(checked.losses) == 1 else f"{len(checked.losses)} significant losses"
    console.print(Text(f"{lost}." if checked.losses else "No significant loss.", style="bold"), soft_wrap=True)
    return 1 if checked.losses else 0


# `forge eval report`: what files of results show, as a table, as Markdown, or as a page.

_WIDE = 250
"""Columns of a table in a pipe, where nobody's screen is too narrow."""


_UNBOUNDED = 100_000
"""Columns that any table fits into."""


def run_report(options: argparse.Namespace) -> int:
    """Print the report, or write its page."""
    rows = shown_rows(options.files)
    if options.html:
        # Pages are shared: the folders of this machine are left out.
        hidden = [
            replace(row, why=without_folders(row.why), journals=tuple(map(without_folders, row.journals)))
            for row in rows
        ]
        made = report_of(hidden, options.against, options.alpha)
        found = {without_folders(name): turns for name, turns in worst_timelines(rows, _TIMELINES).items()}
        title = options.title or f"Evals: {', '.join(one.model for one in made.models)}"
        save_page(options.html, page_of(made, found, title))
        Console(highlight=False).print(f"written: {options.html}", markup=False, soft_wrap=True)
    elif options.markdown:
        print(markdown(report_of(rows, options.against, options.alpha), options.title or "Evals"), end="")
    else:
        console = Console(highlight=False)
        console = console if console.is_terminal else Console(highlight=False, width=_WIDE)
        for part in _parts(report_of(rows, options.against, options.alpha), console):
            console.print(part, soft_wrap=isinstance(part, Text) and not console.is_terminal)
    return 0


def _parts(made: EvalReport, console: Console) -> Iterator[RenderableType]:
    """The report, part by part. Where names do not fit beside one another, configurations have numbers."""
    yield Text(made.facts)
    for one in made.models:
        yield Text(f"\n{one.model}", style="bold")
        yield from _of_model(one, console)
    if made.few_seeds:
        yield Text(f"\n{made.few_seeds}")
    for note in made.notes:
        yield Text(f"note: {note}", style="yellow")
    yield Text(f"\n{made.method}", style="dim")


def _of_model(one: OfModel, console: Console) -> Iterator[RenderableType]:
    counts = [table for table in (one.scenarios, one.tags) if table]
    if all(_fits(_laid_out(table), console) for table in counts):
        metrics = _laid_out(one.metrics)
        yield from (metrics,) if _fits(metrics, console) else _metric_lines(one.metrics)
    else:
        numbers = tuple(map(str, range(1, len(one.columns) + 1)))
        counts = [Table((table.headings[0], *numbers), table.rows) for table in counts]
        numbered = ((f"{number} {name}", *texts) for number, (name, *texts) in enumerate(one.metrics.rows, 1))
        yield from _metric_lines(Table(one.metrics.headings, tuple(numbered)))
    for claim in one.claims:
        colour = _COLOURS.get(claim.finding, "")
        yield Text.assemble(("- ", "dim"), (claim.headline, colour), str(claim)[len(claim.headline) :])
    for text in one.calibration:
        yield Text.assemble(("- ", "dim"), text)
    for table in counts:
        yield Text()
        yield _laid_out(table)


def _fits(table: rich_table.Table, console: Console) -> bool:
    """Whether the table has room without a line that is folded."""
    unbounded = console.options.update(max_width=_UNBOUNDED)
    return Measurement.get(console, unbounded, table).maximum <= console.width


def _metric_lines(metrics: Table) -> Iterator[Text]:
    """The metrics for a narrow terminal."""
    _, *headings = metrics.headings
    for name, *texts in metrics.rows:
        values = "; ".join(f"{heading} {text}" for heading, text in zip(headings, texts, strict=True))
        yield Text.assemble((name, "bold"), f": {values}")


def _laid_out(table: Table) -> rich_table.Table:
    first, *others = table.headings
    made = rich_table.Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    made.add_column(Text(first), no_wrap=True, overflow="fold")
    for heading in others:
        made.add_column(Text(heading), justify="right")
    for name, *texts in table.rows:
        made.add_row(Text(name), *(Text(text, style="red" if "harm" in text else "") for text in texts))
    return made
