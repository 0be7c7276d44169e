"""Guards: pure functions of the state before a batch and of the batch: what is wrong with its calls."""

from stages.guards.calculations import calculated
from stages.guards.call_budget import tool_calls
from stages.guards.call_order import order
from stages.guards.completion_checks import completion
from stages.guards.grounded_values import grounding
from stages.guards.own_words import own_words
from stages.guards.placeholders import no_placeholders
from stages.guards.prerequisite_calls import prerequisites
from stages.guards.repeated_calls import repetition
from stages.guards.slipped_numbers import slipped_numbers
from stages.guards.steps import required_steps
from stages.policy.own_checks import CompletionCheck, PastCall
from stages.policy.rules import Rules
from stages.verdict import Guard

__all__ = [
    "CompletionCheck",
    "PastCall",
    "calculated",
    "completion",
    "grounding",
    "guards_of",
    "no_placeholders",
    "order",
    "own_words",
    "prerequisites",
    "repetition",
    "required_steps",
    "slipped_numbers",
    "tool_calls",
]


def guards_of(rules: Rules) -> tuple[Guard, ...]:
    """The guards that hold what the rules say, in the order in which they are asked; none that has nothing to say."""
    grounded = any(tool.grounded for tool in rules.tools)
    calculating = any(tool.calculated for tool in rules.tools)
    dependent = any(tool.prerequisites for tool in rules.tools)
    answering = rules.value_checks and rules.terminal
    return (
        *((required_steps(rules),) if rules.required or rules.order else ()),
        *((prerequisites(rules),) if dependent else ()),
        *((order(rules),) if rules.order or rules.withheld else ()),
        *((no_placeholders(rules),) if rules.value_checks else ()),
        *((grounding(rules),) if grounded else ()),
        *((calculated(rules),) if calculating else ()),
        *((own_words(rules), slipped_numbers(rules)) if answering else ()),
        *((repetition(rules),) if rules.max_repeats is not None else ()),
        *((completion(rules.checks, rules.tools),) if rules.checks else ()),
    )
