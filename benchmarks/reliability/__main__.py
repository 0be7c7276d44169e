"""python -m benchmarks.reliability: run what is left to run, then write RELIABILITY.md."""

import argparse

from benchmarks.reliability.forge_runs import ABLATED
from benchmarks.reliability.report import write
from benchmarks.reliability.runs import MODELS, PEERS, perform
from benchmarks.reliability.tasks import TASKS


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reliability", description=__doc__)
    every = [*PEERS, *(f"forge auto without {what}" for what in ABLATED)]
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=MODELS)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--peers", nargs="*", default=every, choices=every)
    parser.add_argument("--seeds", type=int, default=20, help="how many (default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="only write the page, from what has been run")
    given = parser.parse_args()
    if not given.report:
        for model in given.models:
            perform(model, given.tasks, given.peers, range(1, given.seeds + 1))
    write()


if __name__ == "__main__":
    main()
