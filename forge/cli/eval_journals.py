"""Journals of evals: the row of a journal's run, and its verdict."""

import glob
from pathlib import Path

from rich.text import Text

from forge.cli.console import LabelledText, printable
from forge.evals.results import rows_with
from forge.evals.row import Row


def recorded_row(journal: Path) -> Row | None:
    """The row of the journal's run; None if no results file beside its folder has it."""
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
    """The scenario, end and verdict of the journal's run; nothing if it is not an eval's journal."""
    row = recorded_row(journal)
    if row is None:
        return ()
    why = f": {printable(row.why)}" if row.why else ""
    return (
        Text(f"scenario {printable(row.scenario)}, seed {row.seed}, {printable(row.configuration.name)}", style="bold"),
        LabelledText("ended", printable(row.end)),
        LabelledText("verdict", f"{row.verdict}{why}"),
    )
