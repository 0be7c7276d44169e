"""Selection: from the names that a user writes to scenarios, players and configurations."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TypeVar, get_args

from msgspec import Struct
from msgspec.structs import replace

from forge.errors import ForgeError
from forge.evals.ablations import ABLATIONS, REFORGED
from forge.evals.player import Player
from forge.evals.row import Configuration
from forge.evals.scenario import Scenario
from forge.evals.serving import ModeName
from forge.evals.unsure_variants import asks_larger, unsure_variant
from forge.evals.variants import COMPACTORS, THINKING
from forge.workflow.suggestions import did_you_mean
from stages.serialize import Mode

_T = TypeVar("_T")

_LISTED = 20
"""Maximum number of names that a refusal lists."""


MODES: Mapping[str, ModeName] = MappingProxyType({name: name for name in ("auto", *get_args(Mode))})
"""The modes of forge, by name."""

_AXES: Mapping[str, Collection[str]] = {
    "modes": MODES,
    "ablations": ABLATIONS,
    "compacts": COMPACTORS,
    "thinks": THINKING,
}


class Axes(Struct, frozen=True, kw_only=True):
    """What is compared: forge with each combination of these options, and the players that it is compared with.

    `only`: of all these the ones with these names, which are a Configuration's `way`; empty: all.
    ForgeError, when it is made, for an option that there is not.
    """

    modes: tuple[str, ...] = ("auto",)
    ablations: tuple[str, ...] = ("",)
    compacts: tuple[str, ...] = ("",)
    thinks: tuple[str, ...] = ("",)
    unsures: tuple[str, ...] = ("",)
    against: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse unknown names."""
        for axis, known in _AXES.items():
            for name in filter(None, getattr(self, axis)):
                picked({one: one for one in known}, name, f"--{axis.removesuffix('s')}")
        for name in filter(None, self.unsures):
            unsure_variant(name)

    @property
    def asked_modes(self) -> tuple[ModeName, ...]:
        """The modes, as servers are connected to in them."""
        return tuple(MODES[mode] for mode in self.modes)


def chosen_scenarios(
    scenarios: Sequence[Scenario], names: Sequence[str] = (), tags: Sequence[str] = ()
) -> tuple[Scenario, ...]:
    """Those of these names with one of these tags. ForgeError for an unknown one, and if none is left."""
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
    """Each configuration once, forge's first; `base` has the models, the server and the temperature.

    ForgeError for a player that there is not, and for a name in `axes.only` that none of them has.
    """
    combined = product(axes.modes, axes.ablations, axes.compacts, axes.thinks, axes.unsures)
    own = (
        replace(
            base,
            player="forge",
            mode=mode,
            ablation="" if off == REFORGED else off,
            compact=compact,
            think=think,
            unsure=unsure,
            larger=base.larger if asks_larger(unsure) else "",
        )
        for mode, off, compact, think, unsure in combined
    )
    others = (
        replace(base, player=player.name, mode=mode, think=think, larger="")
        for name in axes.against
        for player, mode in _player_modes(players, name)
        for think in axes.thinks
    )
    by_name = {replace(known, larger="").way: known for known in (*own, *others)}
    for name in axes.only:
        picked(by_name, name, "configuration")
    return tuple(known for name, known in by_name.items() if not axes.only or name in axes.only)


def _player_modes(players: Mapping[str, Player], name: str) -> Iterator[tuple[Player, str]]:
    """The player that `NAME` or `NAME:MODE` stands for, in that mode, else in all that it has."""
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
    """The one of that name. ForgeError, with the nearest name, for an unknown one."""
    if name not in known:
        raise ForgeError(f"there is no {what} {name!r}; there are: {_listed(known)}.{did_you_mean(name, known)}")
    return known[name]


def _listed(names: Iterable[str]) -> str:
    """The names; of very many the first ones."""
    known = list(names)
    left = len(known) - _LISTED
    return ", ".join(known) or "none" if left <= 1 else f"{', '.join(known[:_LISTED])} and {left} more"
