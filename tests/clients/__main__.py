"""`python -m tests.clients`: install the clients, then run them where no network is: the checks, or agents at tasks."""

import argparse
import asyncio
import sys

from tests.clients import pins, report, sandbox
from tests.clients.agents import AGENTS
from tests.clients.checking import checking
from tests.clients.install import install
from tests.clients.trials import trials


def main() -> int:
    """The exit code: 1 where a check failed behind the proxy. What agents finish is counted, not demanded."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description="Without agents: the checks.")
    parser.add_argument("--runs", type=int, default=1, help="of each task (default: 1)")
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"all, {', '.join(AGENTS)}")
    told = parser.parse_args()
    names = list(AGENTS) if told.agents == ["all"] else told.agents
    if unknown := [name for name in names if name not in AGENTS]:
        parser.error(f"there is no agent {unknown[0]}; there are {', '.join(AGENTS)}")
    install([AGENTS[name].pin for name in names] if names else pins.OF_CHECKS)
    sandbox.enter("tests.clients", [f"--runs={told.runs}", *names])
    try:
        return asyncio.run(_trials(names, told.runs) if names else _checks())
    finally:
        report.write()


async def _checks() -> int:
    return 0 if await checking() else 1


async def _trials(names: list[str], runs: int) -> int:
    await trials(names, runs)
    return 0


sys.exit(main())
