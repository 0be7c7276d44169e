"""An evaluation: scenarios, players and what is compared, run on one model server after another."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import UNSET, Struct
from msgspec.structs import replace

from forge.backends.servers import Progress
from forge.errors import ForgeError
from forge.evals.ablations import ABLATIONS
from forge.evals.cells import Cell, cells
from forge.evals.player import Player
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Scenario
from forge.evals.scenario_digest import scenario_digest
from forge.evals.selection import Axes, configurations
from forge.evals.series import Series
from forge.evals.serving import ModelServer, Serving, serving
from forge.evals.single_run import RunOptions
from forge.workflow.suggestions import did_you_mean


class Plan(Struct, frozen=True, kw_only=True):
    """The runs there are to make on a server: all of them, and those that are not done yet.

    `not_counted`: configurations that every scenario excludes, so that they have no runs.
    """

    serving: Serving
    not_counted: tuple[Configuration, ...] = ()
    wanted: tuple[Cell, ...]
    left: tuple[Cell, ...]


class SeriesObserver(Protocol):
    """Told of a series of runs on one server."""

    def downloading(self, progress: Progress) -> None:
        """The model is being fetched."""

    def begun(self, plan: Plan) -> None:
        """The server is ready."""

    def told(self, row: Row) -> None:
        """A run has ended."""


class Evaluation(Struct, frozen=True, kw_only=True):
    """What is to be run. ForgeError, when it is made, for a name that there is not, and if there is nothing to run.

    `parallel` None: as many runs at a time as a server has slots.
    """

    scenarios: tuple[Scenario, ...]
    players: Mapping[str, Player]
    axes: Axes
    seeds: tuple[int, ...]
    parallel: int | None = None
    options: RunOptions = RunOptions()

    def __post_init__(self) -> None:
        """Refuse unknown names and an empty plan before a server is contacted or started."""
        compared = configurations(Configuration(model="", backend=""), self.axes, self.players)
        _refuse_misspelt(self.scenarios, self.players)
        if not any(cells(compared, self.scenarios, self.seeds, self.players)):
            raise ForgeError(f"nothing to run: {self._why_nothing(compared)}")

    def _why_nothing(self, compared: Iterable[Configuration]) -> str:
        if not any(scenario.has(seed) for scenario in self.scenarios for seed in self.seeds):
            return f"no chosen scenario has the seeds {self.seeds[0]} to {self.seeds[-1]}" if self.seeds else "no seeds"
        return f"every chosen scenario excludes {', '.join(one.way for one in compared)}"

    @property
    def context_tokens(self) -> int:
        """What the largest of the scenarios needs."""
        return max(scenario.context_tokens for scenario in self.scenarios)

    async def run(self, server: ModelServer, done: Iterable[Row], observer: SeriesObserver) -> None:
        """Make the runs that are not `done`. ServerLost if the server is; ForgeError if it cannot be used at all.

        ForgeError also if a scenario was changed since some of its runs were `done`.
        """
        _refuse_changed(self.scenarios, done)
        async with serving(server, self.axes.asked_modes, self.context_tokens, observer.downloading) as ready:
            plan = self._plan(ready, server, done)
            observer.begun(plan)
            planned = Counter(cell.configuration for cell in plan.wanted)

            def told(row: Row) -> None:
                observer.told(replace(row, planned=planned[row.configuration]))

            series = Series(serving=ready, players=self.players, options=self.options, told=told)
            await series.run(plan.left, self.parallel or ready.slots)

    def _plan(self, ready: Serving, server: ModelServer, done: Iterable[Row]) -> Plan:
        warmth = server.sampling.temperature
        base = Configuration(
            model=ready.model,
            backend=ready.backend,
            larger=ready.larger,
            temperature=None if warmth is UNSET else warmth,
        )
        compared = configurations(base, self.axes, self.players)
        for configuration in compared:
            speaks, wire = self.players[configuration.player].wire, ready.connection(configuration).setup.dialect.wire
            if speaks not in (None, wire):
                raise ForgeError(f"the player {configuration.player} speaks {speaks} alone, and this server {wire}")
        wanted = tuple(cells(compared, self.scenarios, self.seeds, self.players))
        known, played = {row.key for row in done}, {cell.configuration for cell in wanted}
        return Plan(
            serving=ready,
            not_counted=tuple(one for one in compared if one not in played),
            wanted=wanted,
            left=tuple(cell for cell in wanted if cell.key not in known),
        )


def _refuse_misspelt(scenarios: Iterable[Scenario], players: Mapping[str, Player]) -> None:
    """ForgeError if a scenario excludes nearly an ablation; any other name may be that of a player elsewhere."""
    of_players = {name for player in players.values() for name in (player.name, player.counted_like)}
    known = (*ABLATIONS, "plain")
    for scenario in scenarios:
        for name in scenario.not_counted - of_players - {*known}:
            if meant := did_you_mean(name, known):
                raise ForgeError(
                    f"scenario {scenario.name}: not_counted names {name!r}, which is neither an ablation nor a player "
                    f"of these files.{meant}"
                )


def _refuse_changed(scenarios: Iterable[Scenario], done: Iterable[Row]) -> None:
    """ForgeError if there are runs of a scenario as it was before it was changed: new ones cannot be added to them."""
    now = {scenario.name: scenario_digest(scenario) for scenario in scenarios}
    before = {(row.scenario, row.scenario_digest) for row in done if row.scenario_digest and now.get(row.scenario)}
    changed = {name for name, digest in before if digest != now[name]}
    if changed:
        raise ForgeError(
            f"the results have runs from before these scenarios were changed: {', '.join(sorted(changed))}. Runs from "
            "before and after would not be of the same task: write to another file with -o, or remove the old lines"
        )
