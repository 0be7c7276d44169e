"""Checking: each check against the proxy before scripted servers of three protocols, and against one of them alone."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from forge.backends import named
from forge.proxy import ProxyOptions, ProxyServer
from tests.clients import rows, sandbox
from tests.clients.backend import MODEL, backend
from tests.clients.checks import CHECKS, Check
from tests.clients.rows import Row
from tests.clients.script import Manner
from tests.clients.shapes import PROFILES

LIMIT = 90.0
"""Seconds of a check."""

MANNERS: tuple[Manner, ...] = ("right", "wrong")


async def checking() -> bool:
    """Run all of them, write each row; whether all passed behind the proxy."""
    cases = [(shape, manner, True) for shape in PROFILES for manner in MANNERS]
    cases += [("chat", manner, False) for manner in MANNERS]
    passed = True
    for shape, manner, behind in cases:
        async with backend(shape, manner) as url, _before(url, shape, behind=behind) as address:
            found = [await _checked(check, address, f"{shape}, {manner}", behind=behind) for check in CHECKS]
        rows.keep(found)
        passed = passed and (not behind or all(row.passed for row in found))
    return passed


@asynccontextmanager
async def _before(url: str, shape: str, *, behind: bool) -> AsyncIterator[str]:
    """The address of a proxy before that server, or the server's own."""
    if not behind:
        yield url
        return
    async with ProxyServer(named(url, MODEL, profile=PROFILES[shape]), ProxyOptions(port=0)) as proxy:
        yield proxy.url


async def _checked(check: Check, url: str, server: str, *, behind: bool) -> Row:
    ran = await sandbox.run(check.invocation(url), {}, LIMIT, "checks")
    row = Row(
        kind="check",
        client=check.client,
        version=check.version,
        check=check.name,
        server=server,
        proxy=behind,
        passed=check.expect in ran.said,
        seconds=round(ran.seconds, 1),
        date=rows.today(),
        commit=rows.COMMIT,
    )
    sandbox.note(f"{check.client} {check.name} {server} {'behind the proxy' if behind else 'alone'}", ran)
    sys.stderr.write(
        f"{'passed' if row.passed else 'FAILED'} {check.client}, {check.name}: {server}, {behind=}, {row.seconds} s\n"
    )
    return row
