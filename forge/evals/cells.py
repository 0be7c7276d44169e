"""Cells: which runs there are to do: each configuration on each scenario with each seed."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from forge.evals.player import Player
from forge.evals.row import Configuration, RowKey
from forge.evals.scenario import Scenario

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Cell(Struct, frozen=True, kw_only=True):
    """A run to do."""

    configuration: Configuration
    scenario: Scenario
    seed: int

    @property
    def key(self) -> RowKey:
        """That of its row."""
        return (self.configuration, self.scenario.name, self.seed)

    @property
    def journal(self) -> str:
        """The path of its journal in the folder of journals, without suffix: no two cells share one."""
        known = self.configuration
        folder = _plain(f"{known.model} {known.name} {_digest(msgspec.json.encode(known))}")
        name = self.scenario.name
        plain = _plain(name)
        return f"{folder}/{plain if plain == name else f'{plain}-{_digest(name.encode())}'}-{self.seed}"


def _plain(name: str) -> str:
    return _ODD.sub("-", name)


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=4).hexdigest()


def cells(
    configurations: Sequence[Configuration],
    scenarios: Sequence[Scenario],
    seeds: Iterable[int],
    players: Mapping[str, Player],
) -> Iterator[Cell]:
    """Every run, all configurations of a scenario and seed one after the other, so that pairs are whole early.

    A scenario is left out where not even a flawless model could pass it.
    """
    for seed in seeds:
        for scenario in (one for one in scenarios if one.has(seed)):
            for configuration in configurations:
                player = players[configuration.player]
                if not scenario.not_counted & {configuration.ablation, player.name, player.counted_like}:
                    yield Cell(configuration=configuration, scenario=scenario, seed=seed)
