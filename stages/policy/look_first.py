"""Look first: while a run makes progress, nothing is offered that can wait until something was looked up.

An offer, not a rule: what the model calls anyway runs if it is legal. After replies without progress, escalation
decides (`stages.policy.escalation`).
"""

from stages.grounding.identifiers import is_id
from stages.policy.listing import limited_argument
from stages.policy.named_tools import related_tools, times_asked
from stages.policy.progress import PATIENCE, replies_without_progress
from stages.policy.rules import Rules, listed_values_left, needed_tools, pending, succeeded_names, unsettled_steps
from stages.state import State
from stages.tool import ToolSpec
from stages.view.recall import RECALL


def tools_at_first(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Of the legal tools those that are offered; one that each listed value is for, with the values that are left."""
    return _one_by_one(rules, state, _looking_first(rules, state, allowed))


def _looking_first(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The legal tools, without the writes that can wait until something was looked up, or that nobody speaks of.

    An early look-up is harmless, an early write may not be. After replies without progress, all legal tools are
    offered.
    """
    if not rules.escalation.look_first:
        return allowed
    open_steps = unsettled_steps(rules, state)
    left = [name for name in pending(rules, state.ledger) if name not in open_steps]
    looks = [tool.name for tool in allowed if _looks(tool)]
    if any(name in left for name in looks) and not replies_without_progress(state.ledger):
        return tuple(tool for tool in allowed if tool.effect != "write" or tool.name in _needed(rules))
    if _nothing_found(rules, state, looks):
        allowed = tuple(tool for tool in allowed if tool.effect != "terminal")
    if looks and rules.held_back and _holds_back(state):
        held = [tool for tool in allowed if tool.name in rules.held_back]
        beside = {tool.name for tool in held} - related_tools(held, state)
        return tuple(tool for tool in allowed if tool.name not in beside)
    return allowed


def _one_by_one(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The tools; those that have to be called with each listed value only with those that are left of them."""
    left = {one.tool: one.values for one in listed_values_left(rules, state.ledger)}
    each = {use.tool: use.each_of.argument for use in rules.order if use.each_of and use.tool in left}
    return tuple(limited_argument(one, each[one.name], left[one.name]) if one.name in each else one for one in allowed)


def _nothing_found(rules: Rules, state: State, looks: list[str]) -> bool:
    """Whether nothing was found yet, a look-up was not tried, and each tool that ends the run needs a value.

    That is a grounded one, which could only be the user's; ids aside, which users give.
    """
    ends = [tool for tool in rules.tools if tool.effect == "terminal"]
    needy = bool(ends) and all(any(not is_id(bound.argument) for bound in tool.grounded) for tool in ends)
    if not needy or rules.on_text == "accept" or not _holds_back(state):
        return False
    ledger, reads = state.ledger, {tool.name for tool in rules.tools if _looks(tool)}
    tried = {attempt.name for attempt in ledger.attempts}
    return reads.isdisjoint(succeeded_names(ledger)) and not tried.issuperset(looks)


def _looks(tool: ToolSpec) -> bool:
    return tool.effect == "read" and tool != RECALL


def _needed(rules: Rules) -> frozenset[str]:
    """The tools that the run has to call, may have to call first, or could not call later."""
    bound = (use.tool for use in rules.order if use.demanded or use.at_step or use.before)
    return needed_tools(rules, (*rules.required, *rules.terminal, *bound))


def _holds_back(state: State) -> bool:
    """Whether tools that nobody speaks of are left out: in answer to a user's first message, while that goes well.

    A user who says something again may mean any tool by it, and a model that gets nowhere may need any.
    """
    return times_asked(state) <= 1 and not state.ledger.retries and replies_without_progress(state.ledger) <= PATIENCE
