"""`forge eval run` and `list`: select scenarios, play them and record the results."""

import argparse
import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields
from rich.text import Text

from forge.cli.commands import BackendName, KeyVariable, MaxTokens, ModelName, ProfileName, Timeout
from forge.cli.console import Console, LabelledText, printable
from forge.cli.options import key_of, sampling_of
from forge.cli.progress import downloading
from forge.cli.run import imported
from forge.cli.signals import until_signal
from forge.connection import TIMEOUT
from forge.door.options import Flag
from forge.errors import ForgeError, quantity
from forge.evals.evaluation import Axes, Evaluation, Plan, chosen_scenarios, commit
from forge.evals.player import Player
from forge.evals.players import FORGE, PLAIN
from forge.evals.results import RowFile, journal_folder
from forge.evals.row import Configuration, Row
from forge.evals.scenario import RunVerdict, Scenario
from forge.evals.series import SeriesOptions, ServerLost
from forge.evals.serving import MAX_TOKENS, ModelServer, serving
from forge.evals.suite import SUITES
from forge.runtime.watching import TOOL_LOGGER
from forge.toml_tables import read_toml
from forge.workflow.checks import HINT_LOGGER
from stages.options import AtLeastOne, did_you_mean
from stages.wire.sampling import Temperature

# A series on one server: a line per run with the remaining time; at the end, a summary.

_STYLES: dict[RunVerdict, str] = {
    "right": "green",
    "wrong": "red",
    "harm": "bold red",
    "unfinished": "yellow",
    "unjudged": "magenta",
}
_MINUTE, _HOUR = 60, 3600


class _Progress:
    """Records the rows of a series on one server, and shows them as they come."""

    def __init__(self, console: Console, file: RowFile) -> None:
        self._console, self._file = console, file
        self._wanted = frozenset[object]()
        self._total = self._done = 0

    def begun(self, plan: Plan) -> None:
        """Show the plan."""
        played = {cell.scenario.name for cell in plan.wanted}
        done = len(plan.wanted) - len(plan.left)
        known = f", {done} of them in {self._file.path} already" if done else ""
        compared = ", ".join(dict.fromkeys(cell.configuration.name for cell in plan.wanted))
        runs = f"{quantity(len(played), 'scenario')}: {quantity(len(plan.wanted), 'run')}{known}"
        self._console.say(f"{plan.serving.model}: {compared} on {runs}")
        if plan.not_counted:
            names = ", ".join(one.way for one in plan.not_counted)
            told = f"Skipped, because every selected scenario excludes it: {names}"
            self._console.say(told, "yellow")
        self._wanted = frozenset(cell.key for cell in plan.wanted)
        self._began, self._total = time.monotonic(), len(plan.left)

    def told(self, row: Row) -> None:
        """Record the row, then show it."""
        self._file.append(row)
        self._done += 1
        # Extrapolate from the completed runs.
        rest = (time.monotonic() - self._began) / self._done * (self._total - self._done)
        about = f"{rest:.0f} s"
        if rest >= _MINUTE:
            about = f"{rest / _MINUTE:.0f} min" if rest < _HOUR else f"{rest / _HOUR:.1f} h"
        left = f"; about {about} left" if self._done < self._total else ""
        verdict = Text(f"{row.verdict:<10}", style=_STYLES[row.verdict])
        took = f"  {quantity(row.calls, 'call')}, {row.seconds:.1f} s{left}"
        name = f" {row.configuration.name}  {row.scenario} {row.seed}"
        line = Text.assemble(f"[{self._done}/{self._total}] ", verdict, name, (took, "dim"))
        if row.verdict != "right":
            line.append(f"  {printable(row.why, 160)}", style="dim")
        self._console.say(line)

    def summarize(self) -> None:
        """Show one line per configuration with its verdicts."""
        verdicts: defaultdict[Configuration, Counter[RunVerdict]] = defaultdict(Counter)
        for row in self._file.rows:
            if row.key in self._wanted:
                verdicts[row.configuration][row.verdict] += 1
        for configuration, counts in verdicts.items():
            parts = [f"{counts['right']} of {counts.total()} right"]
            parts += [f"{counts[v]} {v}" for v in _STYLES if v != "right" and counts[v]]
            self._console.say(Text.assemble((configuration.name, "bold"), f": {', '.join(parts)}"))


# Options of `forge eval run`, from the command line and a TOML file with one or more models.

_Names = tuple[str, ...]
_TEMPERATURE = Flag("sampling temperature (default: as recommended for the model, otherwise 0.1)")
_OUTPUT = Flag("results file (default: %(default)s)", "FILE", name="-o --output")
_PARALLEL = Flag("maximum concurrent runs (default: the server's slots)", "N")


class ModelOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model and its server: `[[model]]` in the file, or the options of the same names."""

    backend: BackendName
    model: ModelName = ""
    profile: ProfileName = ""
    temperature: Annotated[Temperature | None, _TEMPERATURE] = None
    max_tokens: MaxTokens = MAX_TOKENS
    api_key_env: KeyVariable = None
    context: Annotated[AtLeastOne | None, Flag("context size of a server that does not report it", "TOKENS")] = None
    slots: Annotated[AtLeastOne | None, Flag("slots of a server started by forge (default: 1)", "N")] = None
    chat_template: Annotated[str, Flag("chat template, for llama-server:FILE", "FILE")] = ""

    def server(self, run_seconds: float) -> ModelServer:
        """The server, where a model call may take as long as a run. ForgeError for a key that is not set."""
        return ModelServer(
            backend=self.backend,
            model=self.model,
            profile=self.profile,
            sampling=sampling_of(self.temperature, self.max_tokens),
            api_key=key_of(self.api_key_env),
            context_tokens=self.context,
            slots=self.slots,
            chat_template_file=self.chat_template,
            request_seconds=max(run_seconds, TIMEOUT),  # the limit of a run tells of one that takes too long
        )


class EvalOptions(Axes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All options of `forge eval run`; the file uses the names of the command line."""

    model: tuple[ModelOptions, ...] = ()
    files: _Names = ()
    suite: str | None = None
    scenario: _Names = ()
    tags: _Names = ()
    runs: Annotated[AtLeastOne, Flag("seeds for each scenario (default: %(default)s)", "N")] = 5
    seed: Annotated[int, Flag("first seed (default: %(default)s)", "FIRST")] = 1
    output: Annotated[str, _OUTPUT] = "results.jsonl"
    timeout: Annotated[Timeout, Flag("maximum seconds per run (default: %(default)g)")] = 300.0
    parallel: Annotated[AtLeastOne | None, _PARALLEL] = None


_OF_MODEL = frozenset(field.name for field in fields(ModelOptions))
_OTHER = frozenset(field.name for field in fields(EvalOptions)) - {"model"}


def _eval_options(given: argparse.Namespace) -> EvalOptions:
    """The options of the command line, which override the file's. ForgeError for unknown or contradictory ones."""
    file: Path | None = given.config
    or_a_file = ", or give a file with [[model]] as --config"
    known = _read(file) if file else {}
    if own := {name: value for name, value in vars(given).items() if name in _OF_MODEL}:
        if "model" in known:
            flag = f"--{min(own).replace('_', '-')}"
            raise ForgeError(f"{file} already lists models; leave out {flag}, or remove the [[model]] tables")
        if "backend" not in own:
            raise ForgeError(f"--backend is missing: say where the model runs{or_a_file}")
        known["model"] = [own]
    said = {name: value for name, value in vars(given).items() if name in _OTHER and value != ()}
    options = msgspec.convert({**known, **said}, EvalOptions)
    if not options.model:
        raise ForgeError(f"no model is given: say where it runs with --backend{or_a_file}")
    return options


def _read(file: Path) -> dict[str, Any]:
    """The file's content; paths in it are relative to its folder."""
    content: dict[str, Any] = read_toml(file, EvalOptions, "file")
    beside = file.parent
    if "files" in content:
        content["files"] = [str(beside / one) for one in content["files"]]
    if content.get("suite", "").endswith(".py"):
        content["suite"] = str(beside / content["suite"])
    if "output" in content:
        content["output"] = str(beside / content["output"])
    return content


# The selection of scenarios and players for the commands of `forge eval`.

_T = TypeVar("_T")


def chosen(
    files: Iterable[str], suite: str | None, names: Sequence[str], tags: Sequence[str]
) -> tuple[tuple[Scenario, ...], Mapping[str, Player]]:
    """The scenarios in the files, otherwise in the suite, filtered by name and tag; and the players by name.

    `suite` is a built-in suite, or one more file. ForgeError for unknown names.
    """
    scenarios: list[Scenario] = []
    players = {player.name: player for player in (FORGE, PLAIN)}
    if suite is not None and suite not in SUITES:
        if not suite.endswith(".py"):
            meant = did_you_mean(suite, SUITES)
            raise ForgeError(f"there is no suite {suite!r}; there are: {', '.join(SUITES)}, and files FILE.py.{meant}")
        files, suite = (*files, suite), None
    for file in dict.fromkeys(files):
        defined = vars(imported(file, "scenarios into a file FILE.py"))
        own, others = values_of(defined, Scenario), values_of(defined, Player)
        if not own and not others:
            raise ForgeError(f"{file} has no scenario; it needs a line like: orders = Scenario(name=…) (docs/evals.md)")
        scenarios += own
        players |= {player.name: player for player in others}
    if suite or not scenarios:
        scenarios += SUITES[suite or "all"]
    return chosen_scenarios(scenarios, names, tags), players


def values_of(defined: Mapping[str, object], kind: type[_T]) -> list[_T]:
    """The distinct values of that type in a module, including those in its lists and tuples."""
    found: dict[int, _T] = {}
    for value in defined.values():
        several = value if isinstance(value, list | tuple) else (value,)
        found |= {id(one): one for one in several if isinstance(one, kind)}
    return list(found.values())


# `forge eval run`: play scenarios on a model, and append a row per run to the results file.


def run_eval(given: argparse.Namespace) -> int:
    """Make the runs that are not in the results file yet; returns 1 if a server is lost.

    ForgeError at the end if some runs could not be judged.
    """
    options, console = _eval_options(given), Console()
    scenarios, players = chosen(options.files, options.suite, options.scenario, options.tags)
    servers = [model.server(options.timeout) for model in options.model]
    evaluation = Evaluation(
        scenarios=scenarios,
        players=players,
        axes=options,
        seeds=tuple(range(options.seed, options.seed + options.runs)),
        parallel=options.parallel,
        options=SeriesOptions(seconds=options.timeout, journals=journal_folder(Path(options.output)), commit=commit()),
    )
    if given.probe:
        return asyncio.run(until_signal(_probe(console, evaluation, servers)))
    with RowFile.locked(Path(options.output)) as file:
        if file.torn:
            console.say(f"The last line of {file.path} was incomplete; that run is repeated.")

        async def run() -> int:
            code = 0
            for server in servers:
                shown = _Progress(console, file)
                with downloading(console) as download:
                    try:
                        await evaluation.run(server, file.rows, begun=shown.begun, told=shown.told, download=download)
                    except ServerLost as lost:
                        console.say(str(lost), "red")
                        code = 1
                    finally:
                        shown.summarize()
            return code

        with _as_meant():
            code = asyncio.run(until_signal(run()))
    if code:
        console.say(f"Stopped. Run the same command again to continue {file.path}.")
        return code
    console.say(f"Results: {file.path}. To compare: forge eval report {file.path}")
    # Runs that could not be judged must not look like success.
    played = {scenario.name for scenario in scenarios}
    if unjudged := [row for row in file.rows if row.verdict == "unjudged" and row.scenario in played]:
        names = ", ".join(sorted({row.scenario for row in unjudged}))
        raise ForgeError(
            f"{quantity(len(unjudged), 'run')} {'is' if len(unjudged) == 1 else 'are'} unjudged, since the scenario's "
            f"own code failed: {names}. Such runs say nothing about the model: fix the scenario, and write its runs to "
            "another file with -o"
        )
    return 0


@contextmanager
def _as_meant() -> Iterator[None]:
    """Suppress tracebacks of tools and hints about workflows: scenarios raise and leave out rules on purpose."""
    logs = [logging.getLogger(name) for name in (TOOL_LOGGER, HINT_LOGGER)]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


async def _probe(console: Console, evaluation: Evaluation, servers: Sequence[ModelServer]) -> int:
    """Print what is known of each server, without any run."""
    with downloading(console) as download:
        for server in servers:
            async with serving(server, evaluation.axes.asked_modes, 0, download) as ready:
                (setup, *_) = (connection.setup for connection in ready.connections.values())
                facts = {
                    "model": ready.model,
                    "server": f"{ready.backend} ({setup.because or 'as given'})",
                    "context": f"{setup.context_tokens:,} tokens; the scenarios need {evaluation.context_tokens:,}",
                    "slots": str(ready.slots),
                    "mode": ", ".join(f"{name}: {each.setup.mode}" for name, each in ready.connections.items()),
                }
                for label, text in facts.items():
                    console.show(LabelledText(label, text))
    return 0


# `forge eval list`: the available scenarios.


def run_scenario_list(options: argparse.Namespace) -> int:
    """List the scenarios with tags and descriptions."""
    scenarios, _ = chosen(options.files, options.suite, options.scenario or (), options.tags or ())
    console = Console()
    for scenario in scenarios:
        console.say(Text.assemble((scenario.name, "bold"), f"   {scenario.about}"))
        facts = f"{quantity(scenario.ideal_calls, 'call')}, {scenario.context_tokens:,} tokens of context"
        console.show(LabelledText("tags", f"{', '.join(sorted(scenario.tags)) or 'none'} ({facts})", style="dim"))
    return 0
