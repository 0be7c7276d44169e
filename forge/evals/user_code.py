"""A scenario's own code, its world and its checks, in a thread: where it hangs, the series goes on without it."""

import asyncio

from forge.evals.cells import Cell
from forge.evals.scenario import Judgement, Trajectory, World, judge
from forge.interpreters.threads import in_thread, unheard


class Hung(Exception):  # noqa: N818 - what happened is in the name
    """It had not ended in its time. Its thread runs on: a thread cannot be stopped."""


async def made_world(cell: Cell, seconds: float, one_by_one: asyncio.Lock) -> World:
    """The scenario's world for the seed. Hung, what its function raises, or TypeError if that returns no World.

    Worlds are made one by one: their data may come from the one `random` of the process, and must follow from the seed.
    """
    made: list[World] = []
    async with one_by_one:
        try:
            async with asyncio.timeout(seconds) as limit:
                await in_thread(lambda: made.append(_world(cell)), unheard)
        except TimeoutError:
            if not limit.expired():
                raise
            raise Hung(f"its world function took longer than {seconds:g} s") from None
    return made[0]


def _world(cell: Cell) -> World:
    made: object = cell.scenario.world(cell.seed)
    if not isinstance(made, World):
        raise TypeError(f"its world function returned {type(made).__name__}, not World")
    return made


async def judgement_of(world: World, trajectory: Trajectory, seconds: float) -> Judgement:
    """What the world's checks say; `unjudged` if they have not ended after so many seconds."""
    made: list[Judgement] = []
    try:
        async with asyncio.timeout(seconds):
            await in_thread(lambda: made.append(judge(world, trajectory)), unheard)
    except TimeoutError:
        return Judgement("unjudged", f"a check took longer than {seconds:g} s")
    return made[0]
