"""The offer: what the next reply may be, computed by a table of named narrowings.

A narrowing makes an offer smaller: it never forbids what the rules allow. It decides only what a constraint offers and
what a correction proposes; a legal call that is made all the same runs, and a narrowing that would leave nothing is
ignored. So a refused step is not asked for in the same way again, and no narrowing can end a workflow.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

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
    repeated_attempts,
    replies_without_progress,
    times_asked,
    unsettled_steps,
    welcomes_words,
    with_spoken,
)
from stages.schema.canonical_json import canonical
from stages.schema.value import Json
from stages.seen import is_id, leaves, unseen_values, with_shown
from stages.state import Attempt, Held, Ledger, State
from stages.tool import RECALL, Grounded, ToolSpec


class Offer(Struct, frozen=True, kw_only=True):
    """What the next reply may be: a call of one of these `tools`, or words; without tools, words alone.

    A tool is one of the rules' own, or that with a narrower schema. `words`: words are an answer. `level` is how far
    escalation has gone, `last`: whether only what ends the run is of use any more.
    """

    tools: tuple[ToolSpec, ...]
    words: bool = False
    level: EscalationLevel = "open"
    last: bool = False
    held: tuple[Held, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools on offer."""
        return tuple(tool.name for tool in self.tools)

    @property
    def stuck(self) -> bool:
        """Whether the run is stuck, and a level of escalation narrows the tools."""
        return not self.last and self.level != "open"


class Narrowing(Struct, frozen=True):
    """`narrow` makes an offer smaller, or hands it on. `why` is what people are told of a tool that it leaves out."""

    narrow: Callable[[Rules, State, Offer], Offer]
    why: str = ""


def offer(rules: Rules, state: State) -> Offer:
    """What the next reply may be: at least one of the legal tools, if any is legal.

    `Rules.without` names the narrowings that are off.
    """
    level, words = escalation_level(rules, state), welcomes_words(rules, state.ledger)
    so_far = Offer(tools=legal_tools(rules, state), words=words, level=level)
    # The model was asked whether any of the legal tools is needed: then all of them are offered.
    asked = state.ledger.asked_to_act == state.ledger.turn
    for name, narrowing in NARROWINGS.items():
        if name not in rules.without and (name == "last_call" or not asked):
            narrowed = narrowing.narrow(rules, state, so_far)
            if narrowed is not so_far and (narrowed.tools or narrowed.words):
                left = frozenset(narrowed.names)
                held = tuple(Held(tool=tool, by=name) for tool in so_far.names if tool not in left)
                so_far = replace(narrowed, held=so_far.held + held)
    return so_far


def offered_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools that the next reply should choose from: some of the legal ones, at least one if any is."""
    return offer(rules, state).tools


def remember(rules: Rules, state: State) -> State:
    """The state that remembers what is asked of its messages at each turn: up to the last one, none is read again.

    What they show is asked once replies bring nothing new, and of values that must have been seen. Of a conversation
    that is not gone on with, as in the proxy, it is not gathered for these alone: most are found near its end.
    """
    seen = any(tool.grounded or tool.calculated for tool in rules.tools)
    if replies_without_progress(state.ledger) or (seen and state.known()):
        state = with_shown(state, _texts_tried(rules, state.ledger))
    return with_spoken(rules.withheld, state) if rules.withheld else state


# How far escalation has gone.


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


# The narrowings, in order.


def last_call(_: Rules, state: State, so_far: Offer) -> Offer:
    """Only the tools that end the run, where the budget has one model call left of several.

    What any other would find out, no model call could use any more.
    """
    ends = tuple(tool for tool in so_far.tools if tool.effect == "terminal")
    if state.ledger.budget.calls != 1 or not state.ledger.turn or not ends:
        return so_far
    return replace(so_far, tools=ends, last=True)


def look_first(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Without the writes that can wait until something was looked up.

    An early look-up is harmless, an early write may not be. After replies without progress, all legal tools are
    offered.
    """
    if so_far.level != "open" or so_far.last:
        return so_far
    open_steps = unsettled_steps(rules, state)
    left = [name for name in pending(rules, state.ledger) if name not in open_steps]
    looks = [tool.name for tool in so_far.tools if _looks(tool)]
    if any(name in left for name in looks) and not replies_without_progress(state.ledger):
        return _only(so_far, lambda tool: tool.effect != "write" or tool.name in _needed(rules))
    if _nothing_found(rules, state, looks):
        return _only(so_far, lambda tool: tool.effect != "terminal")
    return so_far


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
    return not any(map(state.succeeded, reads)) and not tried.issuperset(looks)


def _looks(tool: ToolSpec) -> bool:
    return tool.effect == "read" and tool != RECALL


def _needed(rules: Rules) -> frozenset[str]:
    """The tools that the run has to call, may have to call first, or could not call later."""
    bound = (use.tool for use in rules.order if use.demanded or use.at_step or use.before)
    return needed_tools(rules, (*rules.required, *rules.terminal, *bound))


def _holds_back(state: State) -> bool:
    """Whether ends are left out: in answer to a user's first message, while that goes well.

    A user who says something again may mean any end by it, and a model that gets nowhere may need any.
    """
    return times_asked(state) <= 1 and not state.ledger.retries and replies_without_progress(state.ledger) <= PATIENCE


def one_by_one(rules: Rules, state: State, so_far: Offer) -> Offer:
    """The tools that have to be called with each listed value only with those that are left of them."""
    if so_far.level != "open" or so_far.last:
        return so_far
    left = {one.tool: one.values for one in listed_values_left(rules, state.ledger)}
    each = {use.tool: use.each_of.argument for use in rules.order if use.each_of and use.tool in left}
    if not each:
        return so_far
    tools = (limited_argument(one, each[one.name], left[one.name]) if one.name in each else one for one in so_far.tools)
    return replace(so_far, tools=tuple(tools))


def unstuck(rules: Rules, state: State, so_far: Offer) -> Offer:
    """What leads a stuck run on: other tools than those that it is stuck on, or the same with values not yet tried."""
    if not so_far.stuck:
        return so_far
    return replace(so_far, tools=_leading_on(rules, state, so_far))


def _leading_on(rules: Rules, state: State, so_far: Offer) -> tuple[ToolSpec, ...]:
    allowed = so_far.tools
    if guessing := guessing_tools(rules, state):
        return _finding_values(rules, state, allowed, guessing)
    if _may_be_mended(rules, state):
        return _renewed(allowed, state, stuck_tools(rules, state)) or _in_other_words(allowed, state)
    match so_far.level:
        case "narrow":
            return _other_ways(rules, state, allowed)
        case "pin":
            return _next_step(rules, state, allowed)
        case "open":
            return allowed
        case other:
            assert_never(other)


def without_refused_call(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Without the call that the last reply made in vain, for this one reply.

    A tool without arguments is left out, unless nothing but writes is left. Of a look-up with one text, that text is;
    where all that was said is ASCII, for what is offered instead is ASCII too. Anything else may be right with other
    arguments, and for a write, others are not to be suggested.
    """
    refused = refused_call(state)
    spec = refused and rules.tool(refused.name)
    if refused is None or not spec or spec.repeatable:
        return so_far
    if not _takes_arguments(spec):
        left = _only(so_far, lambda tool: tool.name != spec.name)
        return left if so_far.words or any(tool.effect != "write" for tool in left.tools) else so_far
    # A grounded value is chosen from a list, which `refused_values` takes it from.
    if spec.grounded or not all(message.text.isascii() for message in state.history):
        return so_far
    tools = (without_calls(tool, [refused.arguments]) if tool == spec else tool for tool in so_far.tools)
    return replace(so_far, tools=tuple(tools))


def answer_only(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Words alone, where they are welcome and the last reply only made a call again.

    Only where writes that no rule speaks of are on offer: the model may have done what was asked, and not know it.
    """
    again = any(attempt.turn == state.ledger.turn for attempt in repeated_attempts(state.ledger))
    return replace(so_far, tools=()) if again and rules.unruled and so_far.words and rules.escalation.levels else so_far


NARROWINGS: Mapping[str, Narrowing] = MappingProxyType(
    {
        "last_call": Narrowing(last_call, "one model call is left, to end the run; raise max_iterations"),
        "look_first": Narrowing(
            look_first, 'it can wait until something was looked up; without=["look_first"] offers it at once'
        ),
        "one_by_one": Narrowing(one_by_one),
        "unstuck": Narrowing(
            unstuck, 'replies brought nothing new, and others lead on; without=["unstuck"] offers all'
        ),
        "refused_call": Narrowing(without_refused_call, "its call was just refused"),
        "answer_only": Narrowing(answer_only, "the last reply only made a call again, so the next one is the answer"),
    }
)
"""Every narrowing, by the name that `Rules.without` and `forge ablate` know it by, in the order in which they apply."""

WITHHELD = "withheld"
"""What holds back a tool that is not legal, beside the narrowings (`Rules.withheld`)."""


def why_held(by: str) -> str:
    """Why tools are not offered (`Held.by`), in words, and what to do about it."""
    if by == WITHHELD:
        return "it writes, and no required step needs it; optional_steps allows it"
    known = NARROWINGS.get(by)
    return known.why if known and known.why else f"the narrowing {by}"


def _only(so_far: Offer, keep: Callable[[ToolSpec], bool]) -> Offer:
    """The offer with these of its tools; the same offer where all are, or none."""
    tools = tuple(tool for tool in so_far.tools if keep(tool))
    return replace(so_far, tools=tools) if 0 < len(tools) < len(so_far.tools) else so_far


# What the narrowings stand on.


class _Parameters(Struct):
    properties: dict[str, Raw] = {}


def _takes_arguments(tool: ToolSpec) -> bool:
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


def _texts_tried(rules: Rules, ledger: Ledger) -> list[Json]:
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


def _may_be_mended(rules: Rules, state: State) -> bool:
    """Whether all that is left, beside the end, is what the answers of required steps may call for."""
    return bool(answered := unsettled_steps(rules, state)) and {*answered}.issuperset(pending(rules, state.ledger))


def _finding_values(
    rules: Rules, state: State, allowed: tuple[ToolSpec, ...], guessing: frozenset[str]
) -> tuple[ToolSpec, ...]:
    """What reads and may find the values that were made up: what needs no argument, and pending steps with a value.

    The tools that were called with made-up values are offered with those that results gave, and with the user's ids;
    once nothing else is left to look at, with the user's words too. Writes are offered only where nothing else can be
    called.
    """
    stuck, left = stuck_tools(rules, state), pending(rules, state.ledger)

    def finds(tool: ToolSpec) -> bool:
        if _needs_arguments(tool):
            return tool.name in left and bool(values_to_try(tool, state, "nothing"))
        return tool.name in left or not state.succeeded(tool.name)

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
    known = () if left else tuple(tool for tool in allowed if state.succeeded(tool.name))
    single = (tool.name for tool in known if only_text_argument(tool))
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
