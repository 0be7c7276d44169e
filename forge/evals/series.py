"""A series: the runs of several configurations on one model server, as many at a time as it takes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from forge.connection import Connection
from forge.errors import ForgeError
from forge.evals.cells import Cell
from forge.evals.player import Player
from forge.evals.row import Row
from forge.evals.serving import Serving
from forge.evals.single_run import RunOptions, row_of


class Series(Struct, frozen=True, kw_only=True):
    """What is needed for each of the runs. `told` is given each row when its run has ended."""

    serving: Serving
    players: Mapping[str, Player]
    options: RunOptions
    told: Callable[[Row], None]

    async def run(self, cells: Iterable[Cell], parallel: int) -> None:
        """Run the cells, so many at a time. ForgeError, the rest left, if the server is lost or `told` raises it.

        BrokenPipeError if `told` prints to a closed pipe.

        ForgeError before the first of them if the server gives no log-probabilities and one of them measures by them.
        """
        left = tuple(cells)
        if any(cell.configuration.unsure and not self._connection(cell).setup.logprobs for cell in left):
            raise ForgeError(
                "--unsure needs log-probabilities, and this server gives none as far as its profile says; give one "
                "with logprobs = true by --profile if it does, else leave --unsure out"
            )
        waiting, one_by_one = iter(left), asyncio.Lock()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(parallel):
                    group.create_task(self._work(waiting, one_by_one))
        except* (ForgeError, BrokenPipeError) as errors:
            raise _first(errors) from None

    async def _work(self, waiting: Iterator[Cell], one_by_one: asyncio.Lock) -> None:
        for cell in waiting:
            player = self.players[cell.configuration.player]
            self.told(await row_of(cell, player, self._connection(cell), self.options, one_by_one))

    def _connection(self, cell: Cell) -> Connection:
        return self.serving.connection(cell.configuration)


def _first(errors: BaseExceptionGroup[ForgeError | BrokenPipeError]) -> ForgeError | BrokenPipeError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
