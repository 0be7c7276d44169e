"""Definition: everything that can be wrong with a workflow before it runs, a sentence a mistake."""

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from stages.effect import Budget, Price
from stages.fold import FailedAttempts, Reasoning
from stages.rules import InDoubtPolicy, Rules
from stages.tool import ToolSpec

OnText = Literal["nudge", "accept", "respond"]
"""What bare text means to a workflow."""


def mistakes(rules: Rules, budget: Budget, ends: set[str], optional: Sequence[str] = ()) -> tuple[str, ...]:
    """Everything that is wrong with the rules of a workflow, a sentence each."""
    names = [spec.name for spec in rules.tools]
    known = ", ".join(names) or "none"
    found = [f"two tools are named {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    found += [f"terminal_tool: there is no tool named {n!r}; the tools are: {known}" for n in sorted(ends - {*names})]
    steps = {"required_steps": rules.required, "optional_steps": optional}
    found += [
        f"{option}: there is no tool named {n!r}; the tools are: {known}"
        for option, named in steps.items()
        for n in named
        if n not in names
    ]
    found += [
        f"{name} is terminal and a required step: it would have to be called before it may be called"
        for name in rules.required
        if name in rules.terminal
    ]
    if rules.on_text == "nudge" and not rules.terminal and not ends:
        found.append(
            "there is no terminal_tool: nothing could end the run; name one, or set on_text to accept or respond"
        )
    found += [sentence for spec in rules.tools for sentence in _prerequisite_mistakes(spec, rules)]
    if rules.on_text not in get_args(OnText):
        found.append(f"on_text is {rules.on_text!r}; it must be one of {', '.join(get_args(OnText))}")
    found += _budget_mistakes(budget)
    counts = {"max_parallel": rules.max_parallel, "max_calls_per_reply": rules.max_calls}
    found += [f"{name} is {value}; it must be at least 1" for name, value in counts.items() if value < 1]
    if rules.in_doubt not in get_args(InDoubtPolicy):
        found.append(f"in_doubt is {rules.in_doubt!r}; it must be one of {', '.join(get_args(InDoubtPolicy))}")
    limits = {"max_retries_per_step": rules.max_retries, "max_tool_errors": rules.max_tool_errors}
    found += [f"{name} is {value}; it cannot be negative" for name, value in limits.items() if value < 0]
    return tuple(found)


def _budget_mistakes(budget: Budget) -> list[str]:
    found = [] if budget.calls >= 1 else [f"max_iterations is {budget.calls}; a run needs at least 1 model call"]
    limits = {
        "max_tool_calls": budget.tool_calls,
        "max_tokens": budget.tokens,
        "max_seconds": budget.seconds,
        "max_cost": budget.cost,
    }
    given = {name: most for name, most in limits.items() if most is not None}
    found += [f"{name} is {most}; it must be more than 0" for name, most in given.items() if most <= 0]
    price = budget.price
    if min(price.prompt, price.completion, price.cached or 0) < 0:
        found.append(f"price is {price}; no price is negative")
    if budget.cost is not None and price == Price():
        found.append("max_cost needs price=Price(prompt=…, completion=…): what a million tokens cost")
    return found


def view_mistakes(reasoning: str, failed_attempts: str) -> tuple[str, ...]:
    """What is wrong with what the model is shown of its own past, a sentence each."""
    choices = {"reasoning_replay": (reasoning, Reasoning), "failed_attempts": (failed_attempts, FailedAttempts)}
    return tuple(
        f"{option} is {value!r}; it must be one of {', '.join(get_args(known))}"
        for option, (value, known) in choices.items()
        if value not in get_args(known)
    )


def warning_mistakes(context_thresholds: Sequence[float], iteration_warning: int) -> tuple[str, ...]:
    """What is wrong with the points at which the model is warned, a sentence each."""
    found = [
        f"context_thresholds: {fraction!r} is no fraction of the context; it must be over 0 and at most 1"
        for fraction in context_thresholds
        if not 0 < fraction <= 1
    ]
    if iteration_warning < 0:
        found.append(f"iteration_warning is {iteration_warning}; it cannot be negative")
    return tuple(found)


def compaction_mistakes(compact_at: float, compact_to: float) -> tuple[str, ...]:
    """What is wrong with the points at which compaction begins and ends, a sentence each."""
    fractions = {"compact_at": compact_at, "compact_to": compact_to}
    found = [
        f"{name} is {value}; it is a fraction of the context, over 0 and at most 1"
        for name, value in fractions.items()
        if not 0 < value <= 1
    ]
    if not found and compact_to > compact_at:
        found.append(f"compact_to is {compact_to}; it cannot be over compact_at, which is {compact_at}")
    return tuple(found)


def _prerequisite_mistakes(spec: ToolSpec, rules: Rules) -> list[str]:
    found = []
    dependents = _dependents(spec.name, rules) if spec.prerequisites else ()
    for prerequisite in spec.prerequisites:
        needed = rules.tool(prerequisite.tool)
        if needed is None:
            found.append(f"tool {spec.name}: its prerequisite {prerequisite.tool!r} is not a tool of the workflow")
            continue
        if needed.effect == "terminal":
            found.append(f"tool {spec.name}: its prerequisite {needed.name} is terminal: the run would be over")
        if needed.name in dependents:
            found.append(f"tool {spec.name}: it needs {needed.name}, which needs {spec.name}: neither can be called")
        argument = prerequisite.match_arg
        lacking = [s.name for s in (spec, needed) if argument and argument not in _arguments(s)]
        found += [f"tool {spec.name}: match_arg {argument!r} is not an argument of {name}" for name in lacking]
    return found


def _dependents(name: str, rules: Rules) -> set[str]:
    """The tool of that name, and all that need it, directly or through others."""
    users: dict[str, list[str]] = {}
    for spec in rules.tools:
        for prerequisite in spec.prerequisites:
            users.setdefault(prerequisite.tool, []).append(spec.name)
    found, new = set[str](), {name}
    while new:
        found |= new
        new = {user for one in new for user in users.get(one, ())} - found
    return found


class _Properties(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}


def _arguments(spec: ToolSpec) -> set[str]:
    return {*msgspec.json.decode(spec.parameters, type=_Properties).properties}
