"""Evals: measure a model on scenarios, and whether a difference is real.

A scenario is a value: fresh tools and data for each seed, and two pure checks. A runner appends one row per run to a
JSON Lines file; statistics and reports are pure functions of rows.
"""

from forge.evals.player import Player, RunEnd, Task
from forge.evals.row import Configuration, Row
from forge.evals.scenario import Judgement, PerformedCall, RunVerdict, Scenario, Trajectory, World, judge
from forge.evals.series import Played, play

__all__ = [
    "Configuration",
    "Judgement",
    "PerformedCall",
    "Played",
    "Player",
    "Row",
    "RunEnd",
    "RunVerdict",
    "Scenario",
    "Task",
    "Trajectory",
    "World",
    "judge",
    "play",
]
