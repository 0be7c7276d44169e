"""Guards: pure functions of the state before a batch and of the batch, that allow, block or stop."""

from stages.guards.prerequisites import prerequisites
from stages.guards.steps import required_steps

__all__ = ["prerequisites", "required_steps"]
