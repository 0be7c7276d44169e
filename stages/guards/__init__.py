"""Guards: pure functions of the state before a batch and of the batch, that allow, block or stop."""

from stages.guards.calculated import calculated
from stages.guards.completion import CompletionCheck, completion
from stages.guards.grounding import grounding
from stages.guards.order import order
from stages.guards.placeholders import no_placeholders
from stages.guards.prerequisites import prerequisites
from stages.guards.repetition import repetition
from stages.guards.steps import required_steps
from stages.guards.tool_calls import tool_calls
from stages.rules import Rules
from stages.verdict import Guard

__all__ = [
    "CompletionCheck",
    "calculated",
    "completion",
    "grounding",
    "guards_of",
    "no_placeholders",
    "order",
    "prerequisites",
    "repetition",
    "required_steps",
    "tool_calls",
]


def guards_of(rules: Rules) -> tuple[Guard, ...]:
    """The guards that hold what the rules say, in the order in which they are asked; none that has nothing to say."""
    grounded = any(tool.grounded for tool in rules.tools)
    calculating = any(tool.calculated for tool in rules.tools)
    dependent = any(tool.prerequisites for tool in rules.tools)
    return (
        *((required_steps(rules),) if rules.required or rules.order else ()),
        *((prerequisites(rules),) if dependent else ()),
        *((order(rules),) if rules.order else ()),
        no_placeholders(rules),
        *((grounding(rules),) if grounded else ()),
        *((calculated(rules),) if calculating else ()),
        *((repetition(rules),) if rules.max_repeats is not None else ()),
    )
