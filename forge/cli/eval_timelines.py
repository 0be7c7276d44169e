"""The timelines that a report's page holds: those of the worst runs first, as many as there is room for."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from forge.cli.html_page import without_folders
from forge.cli.journal_timeline import recorded_timeline
from forge.cli.plain import readable
from forge.cli.timelines import Section
from forge.errors import JournalError
from forge.evals.page_data import TimelineSection
from forge.evals.row import Row
from forge.journal.records import read_journal

_WORST_FIRST = ("harm", "wrong", "unfinished", "unjudged", "right")

_LONGEST_TEXT = 3_000
"""Maximum characters of one text."""

_LONGEST = 100_000
"""Maximum bytes of one timeline."""


def worst_timelines(rows: Iterable[Row], room: int) -> dict[str, tuple[TimelineSection, ...]]:
    """The timelines of these runs by their first journals, in no more than `room` bytes.

    Of each scenario and configuration the worst run comes first, then the next. Runs whose journals are gone, or are
    none of forge's, have none.
    """
    found: dict[str, tuple[TimelineSection, ...]] = {}
    for row in _in_turn(rows) if room else ():
        made = _of(row)
        size = len(msgspec.json.encode(made))
        if not made or size > _LONGEST:
            continue
        room -= size
        if room < 0:
            break
        found[row.journals[0]] = made
    return found


def _in_turn(rows: Iterable[Row]) -> list[Row]:
    """The worst run of each cell, then the second worst of each, and so on."""
    cells: defaultdict[object, list[Row]] = defaultdict(list)
    for row in rows:
        if row.journals:
            cells[row.configuration, row.scenario].append(row)
    for cell in cells.values():
        cell.sort(key=lambda row: (_WORST_FIRST.index(row.verdict), row.seed))
    placed = [(place, row) for cell in cells.values() for place, row in enumerate(cell)]
    return [row for _, row in sorted(placed, key=lambda one: (one[0], _WORST_FIRST.index(one[1].verdict)))]


def _of(row: Row) -> tuple[TimelineSection, ...]:
    """The run's timeline, its messages one after the other; empty if a journal cannot be read."""
    made: list[TimelineSection] = []
    for number, journal in enumerate(row.journals, start=1):
        try:
            sections = recorded_timeline(read_journal(Path(journal)))
        except JournalError:
            return ()
        of = f", message {number}" if len(row.journals) > 1 else ""
        made += (_section(section, of) for section in sections)
    return tuple(made)


def _section(section: Section, of: str) -> TimelineSection:
    return f"{section.title}{of}", section.note, tuple(_shown(section))


def _shown(section: Section) -> Iterator[tuple[str, str]]:
    for item in section.items:
        more = len(item.text) - _LONGEST_TEXT
        cut = f"… ({more:,} characters more)" if more > 0 else ""
        yield item.label, readable(without_folders(item.text[:_LONGEST_TEXT])) + cut
