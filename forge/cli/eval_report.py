"""`forge eval report` and `check`: results as text, Markdown or a page with timelines."""

import argparse
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import structs
from msgspec.structs import replace
from rich.markdown import Markdown

from forge.cli.console import Console, printable, readable
from forge.cli.timelines import recorded_timeline, save_page, without_folders
from forge.errors import ForgeError, JournalError
from forge.evals.check import check_against
from forge.evals.report import markdown, report_of
from forge.evals.report_page import TimelineSection, page_of
from forge.evals.results import read_results, refuse_repeated
from forge.evals.row import Row
from forge.evals.statistics import sentence
from forge.journal.records import read_journal

# Reading and merging results files; their texts are made safe to show.

_MOST_CONFIGURATIONS = 256
"""Comparisons take time quadratic in the number of configurations."""


def shown_rows(files: Sequence[Path]) -> tuple[Row, ...]:
    """The rows of all files, safe to show. ForgeError if there are none, or a run occurs twice.

    Journal paths are relative to the current folder; journals elsewhere than beside their results file are left out.
    """
    rows = tuple(row for file in files for row in _shown(file))
    names = " and ".join(map(str, files))
    if not rows:
        raise ForgeError(f"there are no runs in {names}; create them with forge eval run")
    refuse_repeated(rows, names)
    if (several := len({row.configuration for row in rows})) > _MOST_CONFIGURATIONS:
        raise ForgeError(f"{names} have {several} configurations; at most {_MOST_CONFIGURATIONS} can be compared")
    return rows


def _shown(file: Path) -> Iterator[Row]:
    """The rows with all texts shortened and without control characters."""
    folder = file.parent.resolve()
    for row in read_results(file):
        known = row.configuration
        texts = {name: printable(value) for name, value in structs.asdict(known).items() if isinstance(value, str)}
        # Results files may come from anybody: only accept journals in a journal folder beside the file.
        paths = [(folder / journal).resolve() for journal in row.journals]
        beside = all(
            path.is_relative_to(folder) and path.relative_to(folder).as_posix().partition("/")[0].endswith(".journals")
            for path in paths
        )
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


# Timelines for the page, worst runs first, as many as fit.

_WORST_FIRST = ("harm", "wrong", "unfinished", "unjudged", "right")

_LONGEST_TEXT = 3_000
"""Maximum characters of a text."""

_LONGEST, _TIMELINES = 100_000, 4 * 1024 * 1024
"""Maximum bytes of a timeline, and of all on a page."""


def worst_timelines(rows: Iterable[Row], room: int) -> dict[str, tuple[TimelineSection, ...]]:
    """The timelines of these runs, by first journal, in at most `room` bytes.

    The worst run of each scenario and configuration comes first, then the next. Runs without readable journals are left
    out.
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
    """The run's timeline, message by message; empty if a journal cannot be read."""
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
    return readable(without_folders(text[:_LONGEST_TEXT])) + (f"… ({more:,} more characters)" if more > 0 else "")


# `forge eval check`: exit code 1 if new results are significantly worse than a baseline.

_COLOURS = {"better": "green", "worse": "red"}


def run_check(options: argparse.Namespace) -> int:
    """Compare two results files and print what has changed."""
    checked = check_against(shown_rows([options.file]), shown_rows([options.against]))
    console = Console()
    for one in checked.told:
        console.say(sentence(one), _COLOURS.get(one.finding, ""))
    for note in checked.notes:
        console.say(f"note: {note}", "yellow")
    lost = "1 significant loss" if len(checked.losses) == 1 else f"{len(checked.losses)} significant losses"
    console.say(f"{lost}." if checked.losses else "No significant loss.", "bold")
    return 1 if checked.losses else 0


# `forge eval report`: results as Markdown, rendered in a terminal, or as a page.


def run_report(options: argparse.Namespace) -> int:
    """Print the report, or write its page."""
    rows = shown_rows(options.files)
    if options.html:
        # Pages are shared: remove local paths.
        hidden = [
            replace(row, why=without_folders(row.why), journals=tuple(map(without_folders, row.journals)))
            for row in rows
        ]
        made = report_of(hidden, options.against)
        found = {without_folders(name): turns for name, turns in worst_timelines(rows, _TIMELINES).items()}
        title = options.title or f"Evals: {', '.join(made.models)}"
        save_page(options.html, page_of(made, found, title))
        Console().say(f"written: {options.html}")
        return 0
    text = markdown(report_of(rows, options.against), options.title or "Evals")
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text, end="")
    return 0
