"""Escalate after replies without progress: what the next reply is offered.

Escalation never forbids what the rules allow: it only decides what a constraint offers and what a correction
proposes. So a refused step is not asked for in the same way again, and a narrower offer never ends a workflow.
"""

from typing import assert_never

import msgspec

from stages.grounding.sources import with_shown
from stages.policy.levels import EscalationLevel, TextMode
from stages.policy.look_first import tools_at_first
from stages.policy.named_tools import with_spoken
from stages.policy.other_texts import with_other_texts, without_calls
from stages.policy.progress import PATIENCE, replies_without_progress
from stages.policy.refused_ends import takes_arguments, without_refused_ends
from stages.policy.rules import Rules, legal_tools, pending, succeeded_names, unsettled_steps, welcomes_words
from stages.policy.simpler_tools import simpler_tool
from stages.policy.stuck_calls import guessing_tools, stuck_replies, stuck_tools, texts_tried
from stages.policy.untried_values import Said, limited_to, only_text_argument, refused_call, values_to_try
from stages.state import State
from stages.tool import ToolSpec


def escalation_level(rules: Rules, state: State) -> EscalationLevel:
    """The level of escalation: `open` while the run makes progress, or fails in new ways.

    Two replies in a row without a readable call count as stuck.
    """
    ledger = state.ledger
    if ledger.progress >= ledger.turn and ledger.retries <= 1:
        return "open"  # the last reply brought something new: nothing else has to be looked at
    count = stuck_replies(rules, state) or max(replies_without_progress(ledger) - PATIENCE, ledger.retries - 1)
    levels = rules.escalation.levels
    return levels[(count - 1) % len(levels)] if count > 0 and levels else "open"


def offered_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools that the next reply should choose from: some of the legal ones, at least one if any is.

    A tool that the model is stuck on may have its argument limited to values that were seen and not tried. A call
    that was just refused is left out, where a schema can leave it out.
    """
    return _without_refused_call(rules, state, _offered(rules, state))


def _without_refused_call(rules: Rules, state: State, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The tools without the call that the last reply made in vain, for this one reply.

    A tool without arguments is left out, unless nothing but writes is left. Of a look-up with one text, that text is;
    where all that was said is ASCII, for what is offered instead is ASCII too. Anything else may be right with other
    arguments, and for a write, others are not to be suggested.
    """
    refused = refused_call(state)
    spec = refused and rules.tool(refused.name)
    if refused is None or not spec or spec.repeatable:
        return tools
    if not takes_arguments(spec):
        left = tuple(tool for tool in tools if tool.name != spec.name)
        harmless = welcomes_words(rules, state.ledger) or any(tool.effect != "write" for tool in left)
        return left if left and harmless else tools
    # A grounded value is chosen from a list, which `refused_values` takes it from.
    if spec.grounded or not all(message.text.isascii() for message in state.history):
        return tools
    return tuple(without_calls(tool, [refused.arguments]) if tool == spec else tool for tool in tools)


def _offered(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    allowed = without_refused_ends(rules, state, legal_tools(rules, state))
    if ends := _last_tools(rules, state, allowed):
        return ends
    match escalation_level(rules, state):
        case "open" | "constrained" | "prompted":
            return tools_at_first(rules, state, allowed)
        case level if guessing := guessing_tools(rules, state):
            found = _finding_values(rules, state, allowed, guessing)
            return tuple(map(simpler_tool, found)) if level == "simple" else found
        case _ if _may_be_mended(rules, state):
            stuck = stuck_tools(rules, state)
            return _renewed(allowed, state, stuck) or _in_other_words(allowed, state)
        case "narrow" | "call":
            return _other_ways(rules, state, allowed)
        case "pin":
            return _next_step(rules, state, allowed)
        case "simple":
            return tuple(map(simpler_tool, _next_step(rules, state, allowed)))
        case other:
            assert_never(other)


def _may_be_mended(rules: Rules, state: State) -> bool:
    """Whether all that is left, beside the end, is what the answers of required steps may call for."""
    return bool(answered := unsettled_steps(rules, state)) and {*answered}.issuperset(pending(rules, state.ledger))


def _last_tools(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The legal tools that end the run, where the budget has one model call left of several; else empty."""
    ledger = state.ledger
    if ledger.budget.calls != 1 or not ledger.turn or not rules.escalation.end_in_time:
        return ()
    return tuple(tool for tool in allowed if tool.effect == "terminal")


def remember(rules: Rules, state: State) -> State:
    """The state that remembers what is asked of its messages at each turn: up to the last one, none is read again.

    What they show is asked once replies bring nothing new, and of values that must have been seen. Of a conversation
    that is not gone on with, as in the proxy, it is not gathered for these alone: most are found near its end.
    """
    seen = any(tool.grounded or tool.calculated for tool in rules.tools)
    if replies_without_progress(state.ledger) or (seen and state.known()):
        state = with_shown(state, texts_tried(rules, state.ledger))
    depends = {*rules.withheld, *rules.held_back}
    return with_spoken([tool for tool in rules.tools if tool.name in depends], state) if depends else state


def demanded_tools(rules: Rules, state: State) -> tuple[str, ...]:
    """The tools of which the request demands one; empty while text is as welcome as a call."""
    if escalation_level(rules, state) != "call" or welcomes_words(rules, state.ledger):
        return ()
    return tuple(tool.name for tool in offered_tools(rules, state))


def changed_mode(rules: Rules, state: State) -> TextMode | None:
    """The mode that escalation has changed to; None: it has not.

    It stays for the rest of the run: what did not work before would not work again, and each change of mode makes
    the server evaluate the whole prompt again.
    """
    now, modes = escalation_level(rules, state), rules.escalation.modes
    at = now if now in modes else state.sent.mode
    return next((mode for mode in modes if mode == at), None)


def _finding_values(
    rules: Rules, state: State, allowed: tuple[ToolSpec, ...], guessing: frozenset[str]
) -> tuple[ToolSpec, ...]:
    """What reads and may find the values that were made up: what needs no argument, and pending steps with a value.

    The tools that were called with made-up values are offered with those that results gave, and with the user's ids;
    once nothing else is left to look at, with the user's words too. Writes are offered only where nothing else can be
    called.
    """
    ledger = state.ledger
    stuck, left, known = stuck_tools(rules, state), pending(rules, ledger), succeeded_names(ledger)

    def finds(tool: ToolSpec) -> bool:
        if _needs_arguments(tool):
            return tool.name in left and bool(values_to_try(tool, state, "nothing"))
        return tool.name in left or tool.name not in known

    reads = (tool for tool in allowed if tool.effect == "read" and tool.name not in stuck)
    if ways := [tool.name for tool in reads if finds(tool)]:
        reading = tuple(tool for tool in allowed if tool.name in guessing.union(ways))
        return _renewed(reading, state, stuck, "ids")
    return _renewed(tuple(tool for tool in allowed if tool.effect != "write"), state, stuck) or allowed


def _needs_arguments(tool: ToolSpec) -> bool:
    return bool(msgspec.json.decode(tool.parameters, type=dict[str, object]).get("required"))


def _other_ways(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Pending steps that the model is not stuck on; with none, other tools, without writes that nobody named.

    A tool that takes one text and has succeeded is then offered with untried values only, like one it is stuck on.
    """
    left, stuck = pending(rules, state.ledger), stuck_tools(rules, state)
    if steps := tuple(tool for tool in allowed if tool.name in left and tool.name not in stuck):
        return steps
    named = (*rules.required, *rules.escalation.writes)
    safe = (tool for tool in allowed if tool.effect != "write" or tool.name in named)
    known = set(succeeded_names(state.ledger)) if not left else set()
    single = (tool.name for tool in allowed if tool.name in known and only_text_argument(tool))
    return _renewed(tuple(safe) or allowed, state, stuck.union(single)) or _in_other_words(allowed, state)


def _next_step(rules: Rules, state: State, allowed: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """The pending steps; with none pending, the tools that end the run, but not those that the model is stuck on."""
    stuck = stuck_tools(rules, state)
    wanted = pending(rules, state.ledger) or [name for name in rules.terminal if name not in stuck]
    steps = tuple(tool for tool in allowed if tool.name in wanted) or allowed
    return _renewed(steps, state, stuck) or _in_other_words(steps, state)


def _in_other_words(tools: tuple[ToolSpec, ...], state: State) -> tuple[ToolSpec, ...]:
    """The tools as they are offered where nothing is known that could be tried: not as they were called before."""
    return tuple(with_other_texts(tool, state.ledger) for tool in tools)


def _renewed(
    tools: tuple[ToolSpec, ...], state: State, stuck: frozenset[str], said: Said = "words"
) -> tuple[ToolSpec, ...]:
    """The tools; those that the model is stuck on only where there are untried values for them."""
    values = {tool.name: values_to_try(tool, state, said) for tool in tools if tool.name in stuck}
    useful = (tool for tool in tools if values.get(tool.name, True))
    return tuple(limited_to(tool, values[tool.name]) if tool.name in values else tool for tool in useful)
