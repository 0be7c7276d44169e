"""Pairs of runs with the same scenario and seed; and which runs only repeat another one."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import astuple, replace

from forge.evals.row import Row, of_one_task

_T = TypeVar("_T")


class Pair(Struct, frozen=True):
    """Two runs of the same scenario with the same seed."""

    first: Row
    second: Row


class Pairing(Struct, frozen=True, kw_only=True):
    """All pairs of two sets of runs, and what is left out of them.

    `alone`: runs whose scenario and seed the other side lacks. `unjudged`: pairs in which a check raised, so that
    nobody knows. `repeated`: pairs in which both runs only repeat those of another pair. `changed`: the scenarios of
    pairs whose runs are of different tasks, since the scenario was changed between them, one for each pair.
    """

    pairs: tuple[Pair, ...]
    alone: int = 0
    unjudged: int = 0
    repeated: int = 0
    changed: tuple[str, ...] = ()

    def by_scenario(self) -> dict[str, list[Pair]]:
        """The pairs of each scenario."""
        return _by_scenario(self.pairs)

    def by_tag(self) -> dict[str, list[Pair]]:
        """The pairs of the scenarios with each tag that not all have; a scenario with several is in several of them."""
        tags = sorted({tag for pair in self.pairs for tag in pair.first.tags})
        cells = {tag: [pair for pair in self.pairs if tag in pair.first.tags] for tag in tags}
        return {tag: cell for tag, cell in cells.items() if len(cell) < len(self.pairs)}


def paired(first: Iterable[Row], second: Iterable[Row]) -> Pairing:
    """The runs of two sides paired by scenario and seed, in that order, whatever the order of the rows."""
    left, right = ({(row.scenario, row.seed): row for row in side} for side in (first, second))
    both = [Pair(left[key], right[key]) for key in sorted(left.keys() & right.keys())]
    same = [pair for pair in both if of_one_task(pair.first, pair.second)]
    judged = [pair for pair in same if "unjudged" not in (pair.first.verdict, pair.second.verdict)]
    told = [
        pair
        for cell in _by_scenario(judged).values()
        for pair in without_repeats(cell, lambda pair: (pair.first, pair.second))
    ]
    return Pairing(
        pairs=tuple(told),
        alone=len(left.keys() ^ right.keys()),
        unjudged=len(same) - len(judged),
        repeated=len(judged) - len(told),
        changed=tuple(pair.first.scenario for pair in both if not of_one_task(pair.first, pair.second)),
    )


def independent(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The judged runs of one configuration, those that repeat another run of the same scenario left out."""
    cells: defaultdict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.scenario, row.seed)):
        if row.verdict != "unjudged":
            cells[row.scenario].append(row)
    return tuple(row for cell in cells.values() for row in without_repeats(cell, lambda row: (row,)))


def without_repeats(cell: Sequence[_T], runs: Callable[[_T], tuple[Row, ...]]) -> Sequence[_T]:
    """The items of a scenario that are evidence of their own: at temperature 0 a run may only repeat the one before.

    Runs with the same digest are the same. Without digests, runs are taken for repetitions if all of the scenario
    differ in nothing but seed and time: two of five that agree may well do so by chance.
    """
    if all(row.digest for item in cell for row in runs(item)):
        return list({tuple(row.digest for row in runs(item)): item for item in reversed(cell)}.values())[::-1]
    return cell[:1] if len({tuple(map(_measured, runs(item))) for item in cell}) == 1 else cell


def _measured(row: Row) -> tuple[object, ...]:
    """Everything of a run but its seed, its time and its place."""
    here = replace(row, journals=(), commit="", scenario_digest="", planned=0)
    return astuple(replace(here, seed=0, seconds=0.0, started=0.0, cached_tokens=0))


def _by_scenario(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    cells: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        cells[pair.first.scenario].append(pair)
    return dict(cells)
