"""What was decided for thousands of replies is decided so still. docs: `python -m tests.decisions --help`."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import pytest

from tests.decisions.records import Run, Turn, stored_runs, stored_turns
from tests.decisions.replaying import differences, now

T = TypeVar("T")


def _way(run: Run) -> Hashable:
    return run.source, run.scenario, run.mode, run.ablation, run.compact, run.unsure


def _kind(turn: Turn) -> Hashable:
    return turn.protocol, turn.kind, turn.policy, len(turn.asked), turn.end.split()[0]


def _one_of_each(records: Sequence[T], key: Callable[[T], Hashable]) -> list[T]:
    return [*{key(record): record for record in records}.values()]


def _same(runs: Sequence[Run], turns: Sequence[Turn]) -> None:
    runs_now, turns_now = now(runs, turns)
    found = differences(runs, runs_now, turns, turns_now)
    assert not found, f"`python -m tests.decisions` lists them by kind; the first: {found[:5]}"


def test_one_decision_of_each_kind_is_as_it_was_recorded() -> None:
    _same(_one_of_each(stored_runs(), _way), _one_of_each(stored_turns(), _kind))


@pytest.mark.soak
def test_all_decisions_are_as_they_were_recorded() -> None:
    _same(stored_runs(), stored_turns())
