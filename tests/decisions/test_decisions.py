"""What was decided for thousands of replies is decided so still. docs: `python -m tests.decisions --help`."""

from tests.decisions.records import stored_runs, stored_turns
from tests.decisions.replaying import differences, now


def test_recorded_decisions_are_as_they_were() -> None:
    runs, turns = stored_runs(), stored_turns()
    runs_now, turns_now = now(runs, turns)
    found = differences(runs, runs_now, turns, turns_now)
    assert not found, f"`python -m tests.decisions` lists them by kind; the first: {found[:5]}"
