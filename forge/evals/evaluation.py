"""An evaluation: selected scenarios and configurations, run as a series."""

import asyncio
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, get_args

from msgspec import UNSET, Struct
from msgspec.structs import replace

from forge._installation import VERSION
from forge.backends.servers.download import Watch
from forge.connection import ModeName
from forge.errors import ForgeError
from forge.evals.configurations import (
    ABLATIONS,
    COMPACTORS,
    REFORGED,
    THINKING,
    Cell,
    cells,
)
from forge.evals.player import Player
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Scenario
from forge.evals.series import SeriesOptions, row_of, scenario_digest
from forge.evals.serving import ModelServer, Serving, serving
from stages.options import did_you_mean
from stages.wire.target import Mode

# The commit of the running forge, recorded in each row.

_PACKAGE = Path(__file__).parents[1]


def commit() -> str:
    """The commit of this checkout, with `-dirty` if it has local changes; otherwise forge's version."""

    def git(*words: str) -> str:
        try:
            said = subprocess.run(["git", "-C", str(_PACKAGE), *words], capture_output=True, text=True, check=False)  # noqa: S603, S607 - fixed words
        except OSError:
            return ""
        return said.stdout.strip() if said.returncode == 0 else ""

    if git("ls-files", "__init__.py"):  # installed packages may be inside another project's checkout
        return git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return VERSION


# Selection: from names to scenarios, players and configurations.

_T = TypeVar("_T")

_LISTED = 20
"""Maximum number of names to list in an error."""


MODES: Mapping[str, ModeName] = MappingProxyType({name: name for name in ("auto", *get_args(Mode))})
"""Forge's modes, by name."""

_AXES: Mapping[str, Collection[str]] = {"mode": MODES, "ablation": ABLATIONS, "compact": COMPACTORS, "think": THINKING}


class Axes(Struct, frozen=True, kw_only=True):
    """What to compare: forge with each combination of these options, and other players.

    `only` limits this to the named configurations (`Configuration.way`); empty means all. ForgeError for unknown
    options, and for an empty list of them.
    """

    mode: tuple[str, ...] = ("auto",)
    ablation: tuple[str, ...] = ("",)
    compact: tuple[str, ...] = ("",)
    think: tuple[str, ...] = ("",)
    against: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse unknown names, and empty lists."""
        for axis, known in _AXES.items():
            if not getattr(self, axis):
                raise ForgeError(
                    f"{axis} is empty; name at least one of {', '.join(filter(None, known))}, or leave it out"
                )
            for name in filter(None, getattr(self, axis)):
                picked({one: one for one in known}, name, f"--{axis}")

    @property
    def asked_modes(self) -> tuple[ModeName, ...]:
        """The modes in which to connect to servers."""
        return tuple(MODES[mode] for mode in self.mode)


def chosen_scenarios(
    scenarios: Sequence[Scenario], names: Sequence[str] = (), tags: Sequence[str] = ()
) -> tuple[Scenario, ...]:
    """The scenarios with these names and any of these tags. ForgeError for unknown ones, and if none is left."""
    by_name = {scenario.name: scenario for scenario in scenarios}
    if len(by_name) < len(scenarios):
        twice = next(s.name for n, s in enumerate(scenarios) if s.name in [other.name for other in scenarios[:n]])
        raise ForgeError(f"two scenarios are named {twice}; their results could not be told apart")
    wanted = [picked(by_name, name, "scenario") for name in dict.fromkeys(names)] or list(scenarios)
    known = {tag: tag for scenario in scenarios for tag in sorted(scenario.tags)}
    tagged = {picked(known, tag, "tag") for tag in tags}
    left = tuple(scenario for scenario in wanted if not tagged or scenario.tags & tagged)
    if not left:
        raise ForgeError(f"none of the scenarios {', '.join(names)} has the tag {' or '.join(tags)}")
    return left


def configurations(base: Configuration, axes: Axes, players: Mapping[str, Player]) -> tuple[Configuration, ...]:
    """The configurations, forge's first, without duplicates; `base` has model, server and temperature.

    ForgeError for an unknown player, and for a name in `axes.only` that no configuration has.
    """
    combined = product(axes.mode, axes.ablation, axes.compact, axes.think)
    own = (
        replace(
            base,
            player="forge",
            mode=mode,
            ablation="" if off == REFORGED else off,
            compact=compact,
            think=think,
        )
        for mode, off, compact, think in combined
    )
    others = (
        replace(base, player=player.name, mode=mode, think=think)
        for name in axes.against
        for player, mode in _player_modes(players, name)
        for think in axes.think
    )
    by_name = {known.way: known for known in (*own, *others)}
    for name in axes.only:
        picked(by_name, name, "configuration")
    return tuple(known for name, known in by_name.items() if not axes.only or name in axes.only)


def _player_modes(players: Mapping[str, Player], name: str) -> Iterator[tuple[Player, str]]:
    """The player for `NAME` or `NAME:MODE`, in that mode or in all of its modes."""
    own, _, mode = name.partition(":")
    player = picked(players, own, "player")
    if own == "forge":
        raise ForgeError("forge plays anyway, so it is not to be named in --against; --mode chooses its modes")
    if mode and not player.modes:
        raise ForgeError(f"{name!r}: the player {own!r} has no modes of its own")
    if mode:
        yield player, picked({known: known for known in player.modes}, mode, f"mode of {own}")
    else:
        yield from ((player, each) for each in player.modes or ("",))


def picked(known: Mapping[str, _T], name: str, what: str) -> _T:
    """The value with that name. ForgeError, with the nearest name, for an unknown one."""
    if name not in known:
        names, more = list(known), len(known) - _LISTED
        listed = ", ".join(names) or "none" if more <= 1 else f"{', '.join(names[:_LISTED])} and {more} more"
        raise ForgeError(f"there is no {what} {name!r}; there are: {listed}.{did_you_mean(name, known)}")
    return known[name]


# An evaluation, run on one model server after another.


class Plan(Struct, frozen=True, kw_only=True):
    """The runs to make on a server: `wanted` are all of them, `left` those still to do.

    `not_counted`: configurations without runs, because every scenario excludes them.
    """

    serving: Serving
    not_counted: tuple[Configuration, ...] = ()
    wanted: tuple[Cell, ...]
    left: tuple[Cell, ...]


class Evaluation(Struct, frozen=True, kw_only=True):
    """What to run. ForgeError on creation for unknown names, and if there is nothing to run.

    `parallel` None: as many concurrent runs as the server has slots.
    """

    scenarios: tuple[Scenario, ...]
    players: Mapping[str, Player]
    axes: Axes
    seeds: tuple[int, ...]
    parallel: int | None = None
    options: SeriesOptions = SeriesOptions()

    def __post_init__(self) -> None:
        """Refuse unknown names and an empty plan before a server is contacted or started."""
        compared = configurations(Configuration(model="", backend=""), self.axes, self.players)
        known = {name: name for one in self.players.values() for name in (one.name, one.counted_like) if name}
        for scenario in self.scenarios:
            for name in scenario.not_counted:
                picked({**ABLATIONS, **known}, name, f"ablation or player (not_counted of {scenario.name})")
        if any(cells(compared, self.scenarios, self.seeds, self.players)):
            return
        why = f"every chosen scenario excludes {', '.join(one.way for one in compared)}"
        if not any(scenario.has(seed) for scenario in self.scenarios for seed in self.seeds):
            why = f"no chosen scenario has the seeds {self.seeds[0]} to {self.seeds[-1]}" if self.seeds else "no seeds"
        raise ForgeError(f"nothing to run: {why}")

    @property
    def context_tokens(self) -> int:
        """The largest context that a scenario needs."""
        return max(scenario.context_tokens for scenario in self.scenarios)

    async def run(
        self,
        server: ModelServer,
        done: Iterable[Row],
        *,
        begun: Callable[[Plan], None],
        told: Callable[[Row], None],
        download: Watch | None = None,
    ) -> None:
        """Make the runs that are not `done`. ServerLost if the server fails; ForgeError if it cannot be used at all.

        ForgeError also if a scenario has changed since some of its runs in `done`. `download` watches a model's
        download. `begun` gets the plan when the server is ready, `told` each row when its run has ended; exceptions of
        `told` end the series: ForgeError, or BrokenPipeError if it prints to a closed pipe.
        """
        self._refuse_changed(done)
        one_by_one = asyncio.Lock()
        async with serving(server, self.axes.asked_modes, self.context_tokens, download) as ready:
            plan = self._plan(ready, server, done)
            begun(plan)
            planned = Counter(cell.configuration for cell in plan.wanted)
            waiting = iter(plan.left)

            async def work() -> None:
                for cell in waiting:
                    known = cell.configuration
                    player, connection = self.players[known.player], ready.connection(known)
                    row = await row_of(cell, player, connection, self.options, one_by_one)
                    told(replace(row, planned=planned[known]))

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(self.parallel or ready.slots):
                        group.create_task(work())
            except BaseExceptionGroup as errors:  # not `except*`: before Python 3.11.4 it wraps what is raised in it
                ours, others = errors.split((ForgeError, BrokenPipeError))
                if ours is None or others is not None:
                    raise
                first = ours.exceptions[0]
                while isinstance(first, BaseExceptionGroup):
                    first = first.exceptions[0]
                raise first from None

    def _refuse_changed(self, done: Iterable[Row]) -> None:
        """ForgeError if a scenario has changed since its last run in `done`."""
        now = {scenario.name: scenario_digest(scenario) for scenario in self.scenarios}
        last = {row.scenario: row.scenario_digest for row in done if row.scenario_digest}
        changed = [name for name, digest in now.items() if digest and last.get(name, digest) != digest]
        if changed:
            raise ForgeError(
                f"the results have runs from before these scenarios were changed: {', '.join(sorted(changed))}. Runs "
                "from before and after would not be of the same task: write to another file with -o, or remove the old "
                "lines"
            )

    def _plan(self, ready: Serving, server: ModelServer, done: Iterable[Row]) -> Plan:
        warmth = server.sampling.temperature
        base = Configuration(
            model=ready.model,
            backend=ready.backend,
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
