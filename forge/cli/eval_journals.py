"""Journals of evals: the run of a journal, its verdict, and the workflow that replays it."""

import asyncio
import glob
from pathlib import Path
from typing import Any

from rich.text import Text

from forge.agent import Agent
from forge.cli.console import LabelledText, printable
from forge.cli.eval_run import values_of
from forge.cli.run import imported, load_served
from forge.errors import ForgeError
from forge.evals.configurations import Cell, configured_workflow
from forge.evals.evaluation import Axes
from forge.evals.results import rows_with
from forge.evals.row import Row
from forge.evals.scenario import Scenario
from forge.evals.series import made_world
from forge.evals.suite import SUITES
from forge.workflow.workflow import Workflow

_SUITE = "suite"
"""The name of the built-in scenarios for `--workflow`."""

_SECONDS = 60.0
"""Maximum seconds for a scenario to make its world."""


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


def journal_workflow(reference: str, journal: Path) -> Workflow:
    """The workflow given by `--workflow`; for an eval's journal, that of its scenario and configuration.

    `suite` means the built-in scenarios, a file without a name its own scenarios; FILE.py:NAME is always a workflow.
    ForgeError for runs of other players, and for anything missing.
    """
    row = recorded_row(journal) if reference == _SUITE or reference.endswith(".py") else None
    if row is None and reference == _SUITE:
        raise ForgeError(f"{journal} is not the journal of an eval next to its results; name a workflow instead")
    scenario = _scenario(reference, row) if row else None
    if row is None or scenario is None:
        served = load_served(reference)
        return served.workflow if isinstance(served, Agent) else served
    return _configured(scenario, row)


def _scenario(reference: str, row: Row) -> Scenario | None:
    """The run's scenario in the suite or the file; None if the file does not have it."""
    if reference != _SUITE:
        own = values_of(vars(imported(reference, "FILE.py")), Scenario)
        return next((one for one in own if one.name == row.scenario), None)
    if "bfcl" in row.tags:
        raise ForgeError("BFCL scenarios cannot be replayed with a workflow; leave out --workflow to see the recording")
    known = {scenario.name: scenario for scenario in SUITES["all"]}
    if row.scenario not in known:
        name = printable(row.scenario)
        raise ForgeError(f"the built-in suite has no scenario {name!r}; name its file with --workflow FILE.py")
    return known[row.scenario]


def _configured(scenario: Scenario, row: Row) -> Workflow[Any]:
    known = row.configuration
    if known.player != "forge":
        raise ForgeError(
            f"the run was made by {printable(known.player)}, not by forge, so no workflow reproduces its states; "
            "leave out --workflow to see the recording"
        )
    Axes(ablation=(known.ablation,), compact=(known.compact,))  # refuses unknown names
    cell = Cell(configuration=known, scenario=scenario, seed=row.seed)
    try:
        world = asyncio.run(made_world(cell, _SECONDS, asyncio.Lock()))
    except Exception as error:
        raise ForgeError(f"the scenario {scenario.name} raised {type(error).__name__}: {error}") from error
    return configured_workflow(world.workflow, known)
