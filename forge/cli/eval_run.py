"""`forge eval run`: play scenarios on a model, and append a row a run to a file of results."""

import argparse
import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.text import Text

from forge.cli.console import Console
from forge.cli.eval_options import EvalOptions, eval_options
from forge.cli.eval_progress import EvalProgress
from forge.cli.eval_scenarios import Chosen, chosen
from forge.cli.layout import LabelledText, show
from forge.cli.progress import downloading
from forge.cli.signals import until_signal
from forge.errors import ForgeError, quantity
from forge.evals.evaluation import Evaluation, Plan
from forge.evals.row import Row
from forge.evals.row_file import RowFile, journal_folder
from forge.evals.selection import Axes
from forge.evals.serving import ModelServer, Serving, serving
from forge.evals.single_run import RunOptions, ServerLost
from forge.evals.source import commit
from forge.runtime.raised import TOOL_LOGGER


def run_eval(given: argparse.Namespace) -> int:
    """Make the runs that are not in the file of results yet; 1 if a server is lost on the way."""
    options, console = eval_options(given), Console(highlight=False)
    picked = chosen(options.files, options.suite, options.scenario, options.tags)
    if given.probe:
        servers = [model.server(options.timeout) for model in options.model]
        return asyncio.run(until_signal(_probe(console, _evaluation(options, picked), servers)))
    return carried_out(options, picked, console)


def carried_out(options: EvalOptions, picked: Chosen, console: Console) -> int:
    """Make the runs of these scenarios; the exit code. ForgeError, when all are made, if some could not be judged."""
    evaluation, servers = _evaluation(options, picked), [model.server(options.timeout) for model in options.model]
    with RowFile.locked(Path(options.output)) as file:
        if file.torn:
            console.print(Text(f"The last line of {file.path} was incomplete; that run is made again."), soft_wrap=True)
        with _without_tracebacks():
            code = asyncio.run(until_signal(_run(console, evaluation, servers, file)))
    if code:
        console.print(Text(f"Stopped. The same command goes on with what is not in {file.path} yet."), soft_wrap=True)
        return code
    console.print(Text(f"Results: {file.path}. To compare: forge eval report {file.path}"), soft_wrap=True)
    _refuse_unjudged(file.rows, {scenario.name for scenario in picked.scenarios})
    return 0


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Nothing of what tools raise in the log: those of scenarios do it on purpose, and the journals have it."""
    log = logging.getLogger(TOOL_LOGGER)
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def _refuse_unjudged(rows: Iterable[Row], scenarios: Collection[str]) -> None:
    """ForgeError if runs of these scenarios could not be judged: nobody should take them for a success."""
    unjudged = [row for row in rows if row.verdict == "unjudged" and row.scenario in scenarios]
    if unjudged:
        names = ", ".join(sorted({row.scenario for row in unjudged}))
        verb = "is" if len(unjudged) == 1 else "are"
        raise ForgeError(
            f"{quantity(len(unjudged), 'run')} {verb} unjudged, since the scenario's own code failed: "
            f"{names}. Such runs say nothing about the model: fix the scenario, and write its runs to another file "
            "with -o"
        )


def _evaluation(options: EvalOptions, picked: Chosen) -> Evaluation:
    return Evaluation(
        scenarios=picked.scenarios,
        players=picked.players,
        axes=Axes(
            modes=options.mode,
            ablations=options.ablation,
            compacts=options.compact,
            thinks=options.think,
            unsures=options.unsure,
            against=options.against,
            only=options.only,
        ),
        seeds=tuple(range(options.seed, options.seed + options.runs)),
        parallel=options.parallel,
        options=RunOptions(seconds=options.timeout, journals=journal_folder(Path(options.output)), commit=commit()),
    )


async def _run(console: Console, evaluation: Evaluation, servers: Sequence[ModelServer], file: RowFile) -> int:
    code = 0
    for server in servers:
        with _Shown(console, file) as watch:
            try:
                await evaluation.run(server, file.rows, watch)
            except ServerLost as lost:
                console.print(Text(str(lost), style="red"), soft_wrap=True)
                code = 1
    return code


class _Shown(ExitStack):
    """Writes rows down, and shows the progress of a series on one server."""

    def __init__(self, console: Console, file: RowFile) -> None:
        super().__init__()
        self._console, self._file = console, file
        self.downloading = self.enter_context(downloading(console))
        self._progress: EvalProgress | None = None

    def begun(self, plan: Plan) -> None:
        """Show what there is to do."""
        self._console.print(Text(_plan(plan, self._file.path)), soft_wrap=True)
        if plan.not_counted:
            names = ", ".join(one.way for one in plan.not_counted)
            told = f"Not run, because every chosen scenario excludes it: {names}"
            self._console.print(Text(told, style="yellow"), soft_wrap=True)
        wanted = {cell.key for cell in plan.wanted}
        before = [row for row in self._file.rows if row.key in wanted]
        self._progress = self.enter_context(EvalProgress.shown(self._console, len(plan.left), before))

    def told(self, row: Row) -> None:
        """Write the row down, then show it."""
        self._file.append(row)
        if self._progress is not None:
            self._progress.told(row)


def _plan(plan: Plan, file: Path) -> str:
    names = {cell.scenario.name for cell in plan.wanted}
    done = len(plan.wanted) - len(plan.left)
    known = f", {done} of them in {file} already" if done else ""
    compared = ", ".join(dict.fromkeys(cell.configuration.name for cell in plan.wanted))
    runs = quantity(len(plan.wanted), "run")
    return f"{plan.serving.model}: {compared} on {quantity(len(names), 'scenario')}: {runs}{known}"


async def _probe(console: Console, evaluation: Evaluation, servers: Sequence[ModelServer]) -> int:
    """Print what is known of each server before any run."""
    with downloading(console) as download:
        for server in servers:
            async with serving(server, evaluation.axes.asked_modes, 0, download) as ready:
                for label, text in _facts(ready, evaluation.context_tokens).items():
                    show(console, LabelledText(label, text))
    return 0


def _facts(ready: Serving, needed: int) -> dict[str, str]:
    (setup, *_) = (connection.setup for connection in ready.connections.values())
    return {
        "model": ready.model,
        "server": f"{ready.backend} ({setup.because or 'as given'})",
        "context": f"{setup.context_tokens:,} tokens; the scenarios need {needed:,}",
        "slots": str(ready.slots),
        "mode": ", ".join(f"{name}: {each.setup.mode}" for name, each in ready.connections.items()),
    }
