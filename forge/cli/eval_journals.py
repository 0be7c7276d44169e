"""Journals of evals: which run one is of, how that was judged, and the workflow that replays it."""

from pathlib import Path

from rich.text import Text

from forge.cli.layout import LabelledText
from forge.cli.load import imported, load_workflow
from forge.cli.plain import printable
from forge.errors import ForgeError
from forge.evals.results import stored_rows
from forge.evals.row import Row
from forge.evals.scenario import Scenario
from forge.evals.suite import SUITES
from forge.evals.variants import configured_workflow
from forge.workflow.workflow import Workflow

_SUITE = "suite"
"""What `--workflow` calls forge's own scenarios."""


def row_of(journal: Path) -> Row | None:
    """The row of the run that the journal is of; None for a journal that is not beside a file of results."""
    whole = journal.resolve()
    folder = next((one for one in whole.parents if one.name.endswith(".journals")), None)
    if folder is None:
        return None
    results = folder.with_name(f"{folder.name.removesuffix('.journals')}.jsonl")
    name = whole.relative_to(folder.parent).as_posix()
    rows = stored_rows(results).rows if results.is_file() else ()
    return next((row for row in rows if name in row.journals), None)


def judged(row: Row) -> tuple[LabelledText | Text, ...]:
    """What the run was, how it ended, and how it was judged."""
    why = f": {printable(row.why)}" if row.why else ""
    return (
        Text(f"scenario {printable(row.scenario)}, seed {row.seed}, {printable(row.configuration.name)}", style="bold"),
        LabelledText("ended", printable(row.end)),
        LabelledText("verdict", f"{row.verdict}{why}"),
    )


def workflow_of(reference: str, journal: Path) -> Workflow:
    """The workflow that `--workflow` names; of an eval's journal, the run's own, from a file with its scenario.

    `suite` are forge's own scenarios. ForgeError for a run that was not forge's, and for what is not there.
    """
    row = row_of(journal)
    if row is None:
        if reference == _SUITE:
            raise ForgeError(f"{journal} is not a journal of an eval beside its results; name a workflow instead")
        return load_workflow(reference)
    scenario = _scenario(reference, row.scenario)
    if scenario is None:
        return load_workflow(reference)
    if row.configuration.player != "forge":
        raise ForgeError(
            f"the run was made by {row.configuration.player}, not by forge, so no workflow reproduces its states; "
            "leave out --workflow to see what was recorded"
        )
    return configured_workflow(scenario.world(row.seed).workflow, row.configuration)


def _scenario(reference: str, name: str) -> Scenario | None:
    """The scenario of that name in the suite, or in the file; None for a file without it."""
    if reference == _SUITE:
        known = {scenario.name: scenario for scenario in SUITES["all"]}
        if name not in known:
            raise ForgeError(f"forge's suite has no scenario {name!r}; name the file that has it: --workflow FILE.py")
        return known[name]
    file = reference.rpartition(":")[0] if ".py:" in reference else reference
    if not file.endswith(".py"):
        return None
    values = vars(imported(file, "FILE.py:NAME")).values()
    several = (one for value in values for one in (value if isinstance(value, list | tuple) else (value,)))
    return next((one for one in several if isinstance(one, Scenario) and one.name == name), None)
