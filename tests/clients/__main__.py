"""`python -m tests.clients`: install the clients, then run the checks with them where no network is."""

import asyncio
import sys

from tests.clients import pins, report, sandbox
from tests.clients.checking import checking
from tests.clients.install import install


def main() -> int:
    """The exit code: 1 where a check failed behind the proxy."""
    install(pins.OF_CHECKS)
    sandbox.enter("tests.clients", [])
    try:
        return 0 if asyncio.run(checking()) else 1
    finally:
        report.write()


sys.exit(main())
