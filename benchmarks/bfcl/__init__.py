"""The Berkeley Function Calling Leaderboard: its data and its checker, with forge and others as players.

https://gorilla.cs.berkeley.edu/leaderboard.html. The package `bfcl-eval` is fetched and read, not installed: what it
needs beside its data and its checker are the clients of some thirty services.
"""

from benchmarks.bfcl.checker import Checker
from benchmarks.bfcl.data import ensure_package
from benchmarks.bfcl.players import CATEGORIES, players, scenarios

__all__ = ["CATEGORIES", "Checker", "ensure_package", "players", "scenarios"]
