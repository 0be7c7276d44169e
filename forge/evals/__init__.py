"""Evals: qualify a model on scenarios, and know whether a difference is real.

A scenario is a value: fresh tools and data for each seed, and two pure checks. A runner appends a row a run to a file
of JSON lines; statistics and reports are pure functions of rows.
"""

from forge.evals.player import Ended, Player, Task
from forge.evals.rehearsal import Played, play
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Attempt, Judged, PerformedCall, Scenario, Verdict, World, judge

__all__ = [
    "Attempt",
    "Configuration",
    "Ended",
    "Judged",
    "PerformedCall",
    "Played",
    "Player",
    "Row",
    "Scenario",
    "Task",
    "Verdict",
    "World",
    "judge",
    "play",
]
