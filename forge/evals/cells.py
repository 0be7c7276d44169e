"""Cells: which runs there are to do: each configuration on each scenario with each seed."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from forge.evals.row import Configuration
from forge.evals.scenario import Scenario

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Cell(Struct, frozen=True, kw_only=True):
    """A run to do."""

    configuration: Configuration
    scenario: Scenario
    seed: int

    @property
    def key(self) -> tuple[Configuration, str, int]:
        """That of its row."""
        return (self.configuration, self.scenario.name, self.seed)

    @property
    def journal(self) -> str:
        """The path of its journal in the folder of journals, without suffix: no two cells share one."""
        known = self.configuration
        digest = hashlib.blake2b(msgspec.json.encode(known), digest_size=4).hexdigest()
        folder = _ODD.sub("-", f"{known.model} {known.name} {digest}")
        return f"{folder}/{_ODD.sub('-', self.scenario.name)}-{self.seed}"


def cells(
    configurations: Sequence[Configuration], scenarios: Sequence[Scenario], seeds: Iterable[int]
) -> Iterator[Cell]:
    """Every run, all configurations of a scenario and seed one after the other, so that pairs are whole early.

    A scenario is left out where not even a flawless model could pass it.
    """
    for seed in seeds:
        for scenario in scenarios:
            for configuration in configurations:
                if not scenario.not_counted & {configuration.ablation, configuration.player}:
                    yield Cell(configuration=configuration, scenario=scenario, seed=seed)
