"""The offer: which of the legal tools the next reply is shown, and with which values.

An offer never forbids what the rules allow: it only decides what a constraint offers and what a correction proposes. So
a refused step is not asked for in the same way again, and a narrower offer never ends a workflow.
"""

from collections import Counter
from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from stages.candidates import (
    Said,
    limited_to,
    only_text_argument,
    refused_call,
    values_to_try,
    with_other_texts,
    without_calls,
)
from stages.rules import (
    PATIENCE,
    EscalationLevel,
    Rules,
    attempts_since_progress,
    legal_tools,
    limited_argument,
    listed_values_left,
    needed_tools,
    pending,
    related_tools,
    repeated_attempts,
    replies_without_progress,
    succeeded_names,
    times_asked,
    unsettled_steps,
    welcomes_words,
    with_spoken,
)
from stages.schema.canonical_json import canonical
from stages.schema.value import Json
from stages.seen import is_id, leaves, unseen_values, with_shown
from stages.state import Attempt, Ledger, State
from stages.tool import RECALL, Grounded, ToolSpec

# Look first: while a run makes progress, nothing is offered that can wait until something was looked up.
#
# An offer, not a rule: what the model calls anyway runs if it is legal. After replies without progress, escalation
# decides (`stages.offer`).


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


class _Parameters(Struct):
    properties: dict[str, Raw] = {}


def takes_arguments(tool: ToolSpec) -> bool:
    """Whether there is any argument that a call of it may have."""
    return bool(msgspec.json.decode(tool.parameters, type=_Parameters).properties)


# Stuck tools: called again as they were answered or refused before, or, to look something up, with made-up texts.
#
# A value that nobody gave may still be right once. Tried again, each time with another one, it is guessing: it ends
# only with the budget, and no call of it is like another.


def stuck_tools(rules: Rules, state: State) -> frozenset[str]:
    """The tools that were called, since the last progress, in a way that will not help."""
    return frozenset(attempt.name for attempt in repeated_attempts(state.ledger)) | guessing_tools(rules, state)


def stuck_replies(rules: Rules, state: State) -> int:
    """The number of replies since the first of those calls, including its own."""
    turns = [attempt.turn for attempt in (*repeated_attempts(state.ledger), *_guesses(rules, state))]
    return state.ledger.turn - min(turns) + 1 if turns else 0


def guessing_tools(rules: Rules, state: State) -> frozenset[str]:
    """The tools that read and were called in vain, in two ways or more since the last progress, with made-up texts."""
    return frozenset(attempt.name for attempt in _guesses(rules, state))


def texts_tried(rules: Rules, ledger: Ledger) -> list[Json]:
    """The texts in calls that may have been guessed, since the last progress."""
    return [text for said in _tried(rules, ledger)[1].values() for text in said]


def _guesses(rules: Rules, state: State) -> list[Attempt]:
    """The different calls with such a text, but for the first of each tool."""
    made, written = _tried(rules, state.ledger)
    # The history is read once for all of them.
    made_up = unseen_values([text for said in written.values() for text in said], Grounded(argument=""), state)
    found, begun = list[Attempt](), set[str]()
    for call, said in written.items():
        if not any(text in made_up for text in said):
            continue
        if call[0] in begun:
            found.append(made[call])
        begun.add(call[0])
    return found


_Call = tuple[str, str]


def _tried(rules: Rules, ledger: Ledger) -> tuple[dict[_Call, Attempt], dict[_Call, list[Json]]]:
    """The different calls in vain of the tools that read, and the texts in those of a tool that has several."""
    reads = {tool.name: tool for tool in rules.tools if tool.effect == "read"}
    made: dict[_Call, Attempt] = {}
    for attempt in attempts_since_progress(ledger):
        if attempt.name in reads:
            made.setdefault((attempt.name, canonical(attempt.arguments)), attempt)
    several = {name for name, count in Counter(name for name, _ in made).items() if count > 1}
    return made, {call: [*_texts(reads[call[0]], call[1])] for call in made if call[0] in several}


def _texts(tool: ToolSpec, arguments: str) -> Iterator[Json]:
    """The texts in the arguments, but for those that the schema lists."""
    kinds = msgspec.json.decode(tool.parameters, type=dict[str, object]).get("properties")
    for name, value in msgspec.json.decode(arguments, type=dict[str, Raw]).items():
        kind = kinds.get(name) if isinstance(kinds, dict) else None
        if not (isinstance(kind, dict) and kind.keys() & {"enum", "const"}):
            yield from (leaf for leaf in leaves(bytes(value).decode()) if isinstance(leaf, str))


# Escalate after replies without progress: what the next reply is offered.
#
# Escalation never forbids what the rules allow: it only decides what a constraint offers and what a correction
# proposes. So a refused step is not asked for in the same way again, and a narrower offer never ends a workflow.


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
    allowed = legal_tools(rules, state)
    if ends := _last_tools(rules, state, allowed):
        return ends
    match escalation_level(rules, state):
        case "open":
            return tools_at_first(rules, state, allowed)
        case _ if guessing := guessing_tools(rules, state):
            return _finding_values(rules, state, allowed, guessing)
        case _ if _may_be_mended(rules, state):
            stuck = stuck_tools(rules, state)
            return _renewed(allowed, state, stuck) or _in_other_words(allowed, state)
        case "narrow":
            return _other_ways(rules, state, allowed)
        case "pin":
            return _next_step(rules, state, allowed)
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
