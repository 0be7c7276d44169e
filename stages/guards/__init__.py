"""Guards: pure functions of the state before a batch and of the batch, that allow, block or stop."""

from stages.guards.prerequisites import prerequisites
from stages.guards.repetition import repetition
from stages.guards.steps import required_steps
from stages.rules import Rules
from stages.verdict import Guard

__all__ = ["guards_of", "prerequisites", "repetition", "required_steps"]


def guards_of(rules: Rules) -> tuple[Guard, ...]:
    """The guards that hold what the rules say, in the order in which they are asked."""
    return (required_steps(rules), prerequisites(rules), repetition(rules))
