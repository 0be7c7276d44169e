"""Memory: sessions and long-term facts, in the process or in an SQLite file."""

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
from forge.agent.memory.sqlite import SQLiteStore
from forge.agent.memory.tools import fact_tools
from stages.memory import Fact

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
