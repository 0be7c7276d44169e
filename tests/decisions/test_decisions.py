"""What was decided for thousands of replies is decided so still. docs: `python -m tests.decisions --help`."""

from tests.decisions.records import stored_runs, stored_turns
from tests.decisions.replaying import differences, now


def test_all_decisions_are_as_they_were_recorded() -> None:
    # 15 seconds of CPU time. One record of each kind takes half of that, and leaves out six in ten.
    runs, turns = stored_runs(), stored_turns()
    runs_now, turns_now = now(runs, turns)
    found = differences(runs, runs_now, turns, turns_now)
    assert not found, f"`python -m tests.decisions` lists them by kind; the first: {found[:5]}"
