"""Recorded decisions replayed: `python -m tests.decisions` lists what differs; the exit code is 1 then.

`--write` stores what is so now, for the same replies. `--show NAME` prints a record as it goes now, each request with
its reply; the same in another worktree gives the two sides of a diff. `--only WORD` takes the records whose names
contain the word. The replies were drawn by a recorder that 2b4ea5c9 still has.
"""

import argparse
import logging
import sys
from collections import defaultdict

from tests.decisions.records import RUNS, TURNS, store, stored_runs, stored_turns
from tests.decisions.replaying import differences, now, shown


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.decisions", description=__doc__)
    options.add_argument("--write", action="store_true")
    options.add_argument("--show", metavar="NAME")
    options.add_argument("--only", metavar="WORD", default="")
    options.add_argument("--names", action="store_true", help="name the records of each group, not only the first")
    given = options.parse_args()
    logging.disable(logging.CRITICAL)
    runs, turns = stored_runs(), stored_turns()
    if given.show:
        wanted = [run for run in runs if run.name == given.show]
        if not wanted:
            alike = [run.name for run in runs if given.show in run.name]
            print(f"no run has the name {given.show!r}; names are like {(alike or [run.name for run in runs])[:5]}")
            return 2
        print("\n".join(shown(wanted[0])))
        return 0
    runs = [run for run in runs if given.write or given.only in run.name]
    turns = [turn for turn in turns if given.write or given.only in turn.name]
    runs_now, turns_now = now(runs, turns)
    found = differences(runs, runs_now, turns, turns_now)
    groups: dict[str, list[str]] = defaultdict(list)
    for name, group in found:
        groups[group].append(name)
    for group, names in sorted(groups.items()):
        more = "" if len(names) == 1 or given.names else f" and {len(names) - 1} more"
        print(f"{group}: {', '.join(names if given.names else names[:1])}{more}")
    calls = sum(len(run.asked) for run in runs) + sum(len(turn.asked) for turn in turns)
    print(f"{len(found)} of {len(runs) + len(turns)} records differ; they have {calls} model calls")
    if given.write:
        store(RUNS, runs_now)
        store(TURNS, turns_now)
        return 0
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
