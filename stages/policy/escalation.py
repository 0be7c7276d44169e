"""The ladder: what the next reply may be, the longer nothing new has come.

It never forbids what the rules allow: it only decides what a constraint offers, and what a correction proposes. So a
step that was refused is not asked for in the same way again, and no workflow ends because of a narrower offer.
"""

from typing import assert_never

from stages.policy.progress import replies_without_progress, stuck_replies, stuck_tools
from stages.policy.rules import Rules, Rung, TextMode, legal_tools, needed_tools, pending, succeeded_names
from stages.policy.simpler_tools import simpler_tool
from stages.policy.untried_values import limited_to, only_text_argument, values_to_try
from stages.state import Ledger, State
from stages.tool import ToolSpec

_PATIENCE = 2
"""So many replies in a row may fail, each in a way of its own, before that counts as going round in circles."""


def escalation_step(rules: Rules, ledger: Ledger) -> Rung:
    """Where the run stands: `open` while it goes on, or fails in new ways.

    Two replies in a row without a call that could be read are one way.
    """
    if ledger.progress >= ledger.turn and ledger.retries <= 1:
        return "open"  # the last reply brought something new: nothing else has to be looked at
    count = stuck_replies(ledger) or max(replies_without_progress(ledger) - _PATIENCE, ledger.retries - 1)
    rungs = rules.ladder.rungs
    return rungs[(count - 1) % len(rungs)] if count > 0 and rungs else "open"


def offered_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools that the next reply should choose from: some of those that are legal now, at least one if any is.

    One that was called in circles may have its argument limited to values that were seen and not tried.
    """
    ledger = state.ledger
    allowed = legal_tools(rules, ledger)
    match escalation_step(rules, ledger):
        case "open" | "constrained" | "prompted":
            return _looking_first(rules, state, allowed)
        case "narrow" | "call":
            return _other_ways(rules, state, allowed)
        case "pin":
            return _next_step(rules, state, allowed)
        case "simple":
            return tuple(map(simpler_tool, _next_step(rules, state, allowed)))
        case other:
            assert_never(other)


def _looking_first(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Without tools that write and that nothing needs, while a required step that only reads may be taken.

    A look-up too early does no harm, a write may. As soon as a reply brought nothing new, all that is legal is offered.
    """
    left = pending(rules, state.ledger)
    if not left or not rules.ladder.look_first or replies_without_progress(state.ledger):
        return allowed
    if not any(tool.effect == "read" and tool.name in left for tool in allowed):
        return allowed
    return tuple(tool for tool in allowed if tool.effect != "write" or tool.name in _needed(rules))


def _needed(rules: Rules) -> frozenset[str]:
    """What the run has to call, what it may have to call first, and what it could not call later."""
    bound = (use.tool for use in rules.order if use.at_least or use.at_step or use.before)
    return needed_tools(rules, (*rules.required, *rules.terminal, *bound))


def demanded_tools(rules: Rules, state: State) -> tuple[str, ...]:
    """The tools of which the request has to demand one; none, while words are as welcome as a call."""
    ledger = state.ledger
    if escalation_step(rules, ledger) != "call" or (rules.on_text == "accept" and not pending(rules, ledger)):
        return ()
    return tuple(tool.name for tool in offered_tools(rules, state))


def changed_mode(rules: Rules, state: State) -> TextMode | None:
    """The mode that the ladder has changed to, None: it has not.

    It stays for the rest of the run: what did not work before would not work again, and each change of the mode has
    the server read the whole prompt anew.
    """
    now, modes = escalation_step(rules, state.ledger), rules.ladder.modes
    at = now if now in modes else state.sent.mode
    return next((mode for mode in modes if mode == at), None)


def _other_ways(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Pending steps that are no part of the circle; with none, what is none of it and changes nothing unasked.

    A tool that takes one text and has succeeded is then offered with new values only, as what is called in circles is.
    """
    left, circle = pending(rules, state.ledger), stuck_tools(state.ledger)
    if steps := tuple(tool for tool in allowed if tool.name in left and tool.name not in circle):
        return steps
    safe = (tool for tool in allowed if tool.effect != "write" or tool.name in rules.required)
    known = set(succeeded_names(state.ledger)) if not left else set()
    single = (tool.name for tool in allowed if tool.name in known and only_text_argument(tool))
    return _renewed(tuple(safe) or allowed, state, circle.union(single)) or allowed


def _next_step(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The pending steps; with none pending, what ends the run, unless that is what was tried in vain."""
    circle = stuck_tools(state.ledger)
    wanted = pending(rules, state.ledger) or [name for name in rules.terminal if name not in circle]
    steps = tuple(tool for tool in allowed if tool.name in wanted) or allowed
    return _renewed(steps, state, circle) or steps


def _renewed(tools: tuple[ToolSpec, ...], state: State, circle: frozenset[str]) -> tuple[ToolSpec, ...]:
    """The tools without those of the circle, unless there are values that they were not called with."""
    values = {tool.name: values_to_try(tool, state) for tool in tools if tool.name in circle}
    useful = (tool for tool in tools if values.get(tool.name, True))
    return tuple(limited_to(tool, values[tool.name]) if tool.name in values else tool for tool in useful)
