"""Memory: sessions, saved and resumed, and facts that outlive them, in the process or in one SQLite file."""

from typing import TYPE_CHECKING

from forge.agent.memory.protocol import (
    Facts,
    FactStore,
    InProcessStore,
    Memory,
    SavedSession,
    SessionStore,
    SessionSummary,
)
from forge.agent.memory.session import Session
from stages._later import later
from stages.memory import Fact

if TYPE_CHECKING:
    from forge.agent.memory.postgres import PostgresStore as PostgresStore
    from forge.agent.memory.sqlite import SQLiteStore as SQLiteStore
    from forge.agent.memory.tools import fact_tools as fact_tools

__all__ = [
    "Fact",
    "FactStore",
    "Facts",
    "InProcessStore",
    "Memory",
    "SQLiteStore",
    "SavedSession",
    "Session",
    "SessionStore",
    "SessionSummary",
    "fact_tools",
]

__getattr__ = later(
    __name__,
    {
        "forge.agent.memory.postgres": ("PostgresStore",),
        "forge.agent.memory.sqlite": ("SQLiteStore",),
        "forge.agent.memory.tools": ("fact_tools",),
    },
)
