"""Durable runs, which outlive their process: on DBOS, in SQLite or PostgreSQL. Needs the extra `durable`."""

from forge.errors import ForgeError

try:
    import dbos as _dbos  # noqa: F401 - fails if the extra is missing
except ModuleNotFoundError as missing:
    raise ForgeError(
        "durable runs need the extra `durable`, which is not installed: pip install 'forge-toolcalls[durable]'"
    ) from missing

from forge.durable.runs import Page, Run, Runs, Served, client
from forge.durable.worker import Rhythm, worker

__all__ = ["Page", "Rhythm", "Run", "Runs", "Served", "client", "worker"]
