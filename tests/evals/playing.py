"""A run of a scenario by a player, without a server: its row."""

import asyncio

from forge.connection import Connection, Setup
from forge.evals.configurations import Cell
from forge.evals.player import Player as Loop
from forge.evals.players import FORGE
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Scenario
from forge.evals.series import RunOptions, row_of
from stages.wire.target import Mode
from tests.evals.players import Player, Table


def played(
    scenario: Scenario,
    seed: int,
    player: Player,
    *,
    mode: Mode = "native",
    ablation: str = "",
    loop: Loop = FORGE,
) -> Row:
    """The row of the run, in which the player's moves are written and read as the mode has them."""
    configuration = Configuration(model="player", backend="none", player=loop.name, mode=mode, ablation=ablation)
    calculates = loop is FORGE and ablation not in {"no_calculation", "bare"}
    table = Table(scenario.world(seed), player, mode, calculates=calculates, responds=loop is FORGE)
    setup = Setup(mode=mode, model="player")
    cell = Cell(configuration=configuration, scenario=scenario, seed=seed)
    return asyncio.run(row_of(cell, loop, Connection(setup, table), RunOptions(), asyncio.Lock()))
