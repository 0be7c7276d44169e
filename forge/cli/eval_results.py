"""Files of results as a command line names them: read, merged, and safe to show."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from forge.cli.plain import printable
from forge.errors import ForgeError
from forge.evals.results import read_results, refuse_repeated
from forge.evals.row import Row

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
    for row in read_results(file):
        paths = [file.parent / journal for journal in row.journals]
        beside = all(_is_beside(file, journal) for journal in row.journals)
        yield replace(_printable(row), journals=tuple(map(str, paths)) if beside else ())


def _is_beside(file: Path, journal: str) -> bool:
    """Whether the journal lies in a folder of journals beside the file: a file of results may come from anybody."""
    folder, path = file.parent.resolve(), (file.parent / journal).resolve()
    return path.is_relative_to(folder) and path.relative_to(folder).as_posix().partition("/")[0].endswith(".journals")


def _printable(row: Row) -> Row:
    """The row with no text that could control a terminal or is longer than a line or two."""
    known = row.configuration
    texts = {name: printable(value) for name, value in msgspec.to_builtins(known).items() if isinstance(value, str)}
    return replace(
        row,
        configuration=replace(known, **texts),
        scenario=printable(row.scenario),
        tags=tuple(map(printable, row.tags)),
        why=printable(row.why),
        end=printable(row.end),
        commit=printable(row.commit),
    )
