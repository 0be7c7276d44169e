"""Rehearsal: a scenario played without a server, on replies from a list, for its unit tests."""

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from forge.evals.cells import Cell
from forge.evals.forge_player import FORGE
from forge.evals.player import Player, RunEnd
from forge.evals.record import Record
from forge.evals.row import Configuration
from forge.evals.scenario import Judgement, Scenario, Trajectory, judge
from forge.evals.single_run import task_of
from forge.interpreters.scripted import Line, Scripted
from stages.serialize import Mode


class Played(Struct, frozen=True, kw_only=True):
    """A run that is over: the verdict, what it came to, and how it ended by its own word."""

    judged: Judgement
    trajectory: Trajectory
    ended: RunEnd


def play(
    scenario: Scenario,
    replies: Iterable[Line],
    *,
    seed: int = 1,
    player: Player = FORGE,
    mode: Mode = "native",
    ablation: str = "",
) -> Played:
    """The run of the scenario with that seed, by a model that gives these replies one after the other.

    A reply is a text, or one with calls (`forge.interpreters.scripted.call`). ScriptError if the run needs more.
    """
    known = Configuration(model="scripted", backend="scripted", player=player.name, mode=mode, ablation=ablation)
    cell, record, world = Cell(configuration=known, scenario=scenario, seed=seed), Record(), scenario.world(seed)
    backend = Scripted(replies, mode=mode, context_tokens=scenario.context_tokens)

    async def run() -> RunEnd:
        async with backend.connect() as connection:
            return await player.play(task_of(cell, world, connection, record))

    ended = asyncio.run(run())
    trajectory = record.trajectory(len(world.messages))
    return Played(judged=judge(world, trajectory), trajectory=trajectory, ended=ended)
