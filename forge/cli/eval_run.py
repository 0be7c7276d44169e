"""`forge eval run`: play scenarios on a model, and append a row a run to a file of results."""

import argparse
import asyncio
from collections.abc import Iterator

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from forge.cli.eval_progress import EvalProgress
from forge.cli.eval_scenarios import Chosen, chosen
from forge.cli.layout import Row as Line
from forge.cli.layout import show
from forge.cli.options import key_of, sampling_of
from forge.cli.signals import until_signal
from forge.errors import ForgeError, quantity
from forge.evals.ablations import ABLATIONS
from forge.evals.cells import Cell, cells
from forge.evals.row import Configuration, Row
from forge.evals.row_file import RowFile, journal_folder
from forge.evals.selection import MODES, Axes, configurations, picked
from forge.evals.series import Series
from forge.evals.serving import ModelServer, Serving, serving
from forge.evals.single_run import RunOptions, ServerLost
from forge.evals.source import commit
from forge.evals.variants import COMPACTORS, THINKING


def run_eval(options: argparse.Namespace) -> int:
    """Make the runs that are not in the file of results yet."""
    made = _Evaluation(options=options, chosen=chosen(options), axes=_axes(options), server=_server(options))
    console = Console(highlight=False)
    if options.probe:
        return asyncio.run(until_signal(made.probe(console)))
    with RowFile.locked(options.output) as file:
        if file.torn:
            console.print(Text(f"The last line of {file.path} was incomplete; that run is made again."), soft_wrap=True)
        code = asyncio.run(until_signal(made.run(console, file)))
    if code:
        console.print(Text(f"Stopped. The same command goes on with what is not in {file.path} yet."), soft_wrap=True)
    return code


def _axes(options: argparse.Namespace) -> Axes:
    """What is compared. ForgeError for an unknown name."""
    known = {"mode": MODES, "ablation": ABLATIONS, "compact": COMPACTORS, "think": THINKING}
    for axis, names in known.items():
        for name in filter(None, getattr(options, axis)):
            picked({known: known for known in names}, name, axis)
    return Axes(
        modes=options.mode,
        ablations=options.ablation,
        compacts=options.compact,
        thinks=options.think,
        against=options.against,
    )


def _server(options: argparse.Namespace) -> ModelServer:
    return ModelServer(
        backend=options.backend,
        model=options.model,
        profile=options.profile,
        sampling=sampling_of(options.temperature, options.max_tokens),
        api_key=key_of(options.api_key_env),
        slots=options.slots,
        chat_template_file=options.chat_template,
    )


class _Evaluation(Struct, frozen=True, kw_only=True):
    """What a command line asks for."""

    options: argparse.Namespace
    chosen: Chosen
    axes: Axes
    server: ModelServer

    @property
    def context_tokens(self) -> int:
        """What the largest of the scenarios needs."""
        return max(scenario.context_tokens for scenario in self.chosen.scenarios)

    async def run(self, console: Console, file: RowFile) -> int:
        """Make the runs; 1 if the server is lost."""
        options, done = self.options, {row.key for row in file.rows}
        configurations(Configuration(model="", backend=""), self.axes, self.chosen.players)  # refuse before loading
        async with serving(self.server, self.axes.asked_modes, self.context_tokens) as ready:
            wanted = tuple(self._cells(ready))
            left = [cell for cell in wanted if cell.key not in done]
            console.print(Text(_plan(ready, wanted, left, file)), soft_wrap=True)
            with EvalProgress.shown(console, len(left)) as progress:

                def told(row: Row) -> None:
                    file.append(row)
                    progress.told(row)

                run_options = RunOptions(seconds=options.timeout, journals=journal_folder(file.path), commit=commit())
                series = Series(serving=ready, players=self.chosen.players, options=run_options, told=told)
                code = 0
                try:
                    await series.run(left, options.parallel or ready.slots)
                except ServerLost as lost:
                    console.print(Text(str(lost), style="red"), soft_wrap=True)
                    code = 1
                finally:
                    for line in progress.summary():
                        console.print(line, soft_wrap=True)
        return code

    def _cells(self, ready: Serving) -> Iterator[Cell]:
        """All runs there are to make on that server. ForgeError for a player that does not speak its protocol."""
        base = Configuration(model=ready.model, backend=ready.backend, temperature=self.options.temperature)
        players = self.chosen.players
        compared = configurations(base, self.axes, players)
        for configuration in compared:
            speaks, wire = players[configuration.player].wire, ready.connection(configuration).setup.dialect.wire
            if speaks not in (None, wire):
                raise ForgeError(f"the player {configuration.player} speaks {speaks} alone, and this server {wire}")
        seeds = range(self.options.seed, self.options.seed + self.options.runs)
        return cells(compared, self.chosen.scenarios, seeds)

    async def probe(self, console: Console) -> int:
        """Print what is known of the server before any run."""
        async with serving(self.server, self.axes.asked_modes, 0) as ready:
            setup = ready.connection(Configuration(model="", backend="", mode=self.axes.modes[0])).setup
            show(console, Line("model", ready.model))
            show(console, Line("server", f"{ready.backend} ({setup.because or 'as given'})"))
            show(
                console, Line("context", f"{setup.context_tokens:,} tokens; the scenarios need {self.context_tokens:,}")
            )
            show(console, Line("slots", str(ready.slots)))
            show(console, Line("mode", ", ".join(f"{name}: {c.setup.mode}" for name, c in ready.connections.items())))
        return 0


def _plan(ready: Serving, wanted: tuple[Cell, ...], left: list[Cell], file: RowFile) -> str:
    names = {cell.scenario.name for cell in wanted}
    known = f", {len(wanted) - len(left)} of them in {file.path} already" if len(left) < len(wanted) else ""
    compared = ", ".join(dict.fromkeys(cell.configuration.name for cell in wanted))
    return f"{ready.model}: {compared} on {quantity(len(names), 'scenario')}: {quantity(len(wanted), 'run')}{known}"
