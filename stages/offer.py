"""The offer: what the next reply may be, computed by a table of named narrowings.

A narrowing makes an offer smaller, but never forbids what the rules allow: it decides only what a constraint offers and
what a correction suggests. A legal call that was not offered still runs, and a narrowing that would leave nothing is
ignored. So no narrowing can end a workflow.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from stages.candidates import only_text_argument, put_right, refused_call, values_to_try, with_enum
from stages.progress import PATIENCE, repeated_attempts, replies_without_progress
from stages.rules import (
    Rules,
    legal_tools,
    listed_values_left,
    needed_tools,
    pending,
    unsettled_steps,
    welcomes_words,
    with_spoken,
)
from stages.seen import with_shown
from stages.state import Held, Ledger, State
from stages.tool import RECALL, RESPOND, ToolSpec


class Offer(Struct, frozen=True, kw_only=True):
    """What the next reply may be: a call of one of these `tools`, or words; without tools, words alone.

    A tool is one of the rules' own, some with a narrower schema. `words`: words are an answer. `held` lists what was
    left out of the legal calls, and by which narrowing.
    """

    tools: tuple[ToolSpec, ...]
    words: bool = False
    held: tuple[Held, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools on offer."""
        return tuple(tool.name for tool in self.tools)


class Narrowing(Struct, frozen=True):
    """`narrow` returns the same offer or a smaller one; `why` explains to people what it left out."""

    narrow: Callable[[Rules, State, Offer], Offer]
    why: str


def offer(rules: Rules, state: State) -> Offer:
    """What the next reply may be: at least one of the legal tools, if any is legal.

    `Rules.without` names the narrowings that are off.
    """
    so_far = Offer(tools=legal_tools(rules, state), words=welcomes_words(rules, state.ledger))
    asked = state.ledger.asked_to_act == state.ledger.turn
    for name, narrowing in NARROWINGS.items():
        # A model that was asked whether any legal tool is needed is offered all of them, unless the run must end.
        if name not in rules.without and (not asked or narrowing.narrow is last_call):
            narrowed = narrowing.narrow(rules, state, so_far)
            if narrowed is not so_far and (narrowed.tools or narrowed.words):
                so_far = replace(narrowed, held=so_far.held + _newly_held(so_far, narrowed, name))
    return so_far


def _newly_held(before: Offer, after: Offer, by: str) -> tuple[Held, ...]:
    """The tools that only the offer before has, and those of which only some calls are left."""
    left = {tool.name: tool for tool in after.tools}
    gone = [Held(tool=tool.name, by=by) for tool in before.tools if tool.name not in left]
    fewer = [
        Held(tool=tool.name, by=by, values=True)
        for tool in before.tools
        if tool.name in left and left[tool.name] != tool
    ]
    return (*gone, *fewer)


def offered_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools on offer: some of the legal ones, at least one if any is legal."""
    return offer(rules, state).tools


def remembering(rules: Rules) -> Callable[[State], State]:
    """A function that adds a memo of what each turn looks for in its messages, so that none is read twice.

    The values that messages show are indexed only for runs that continue. In the proxy, each request is a new
    state, and most values are found near the end of its history.
    """
    valued = any(tool.grounded or tool.calculated for tool in rules.tools)

    def remember(state: State) -> State:
        state = with_shown(state) if valued and state.known() else state
        return with_spoken(rules.withheld, state) if rules.withheld else state

    return remember


# The narrowings, in order.


def last_call(_: Rules, state: State, so_far: Offer) -> Offer:
    """Only the tools that end the run, if the budget has one of several model calls left.

    No further model call could use what another tool finds.
    """
    ends = tuple(tool for tool in so_far.tools if tool.effect == "terminal")
    if state.ledger.budget.calls != 1 or not state.ledger.turn or not ends:
        return so_far
    return replace(so_far, tools=ends)


def _gets_nowhere(ledger: Ledger) -> bool:
    """Whether the model is stuck: it repeats a call, or several replies failed in different ways."""
    vain = replies_without_progress(ledger)
    return bool(vain and repeated_attempts(ledger)) or vain > PATIENCE or ledger.retries > 1


def asked_about(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Only the tools of the calls that the model was asked about, if words are an answer too."""
    tools = state.ledger.asked_about
    if not tools or not welcomes_words(rules, state.ledger):
        return so_far
    return _only(so_far, lambda tool: tool.name in tools)


def look_first(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Without the writes that can wait, as long as a required look-up is pending.

    An early look-up is harmless, an early write may not be. After a reply without progress, all legal tools are
    offered.
    """
    if replies_without_progress(state.ledger):
        return so_far
    open_steps = unsettled_steps(rules, state)
    left = {name for name in pending(rules, state.ledger) if name not in open_steps}
    if not any(tool.name in left for tool in so_far.tools if _looks(tool)):
        return so_far
    # What the run has to call, may have to call first, or could not call later is not held back.
    bound = (use.tool for use in rules.order if use.demanded or use.at_step or use.before)
    needed = needed_tools(rules, (*rules.required, *rules.terminal, *bound))
    return _only(so_far, lambda tool: tool.effect != "write" or tool.name in needed)


def _looks(tool: ToolSpec) -> bool:
    return tool.effect == "read" and tool != RECALL


def one_by_one(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Tools that must be called with each listed value: only with the values that are left."""
    if _gets_nowhere(state.ledger):
        return so_far
    left = {one.tool: one.values for one in listed_values_left(rules, state.ledger)}
    each = {use.tool: use.each_of.argument for use in rules.order if use.each_of and use.tool in left}
    if not each:
        return so_far
    tools = (with_enum(one, left[one.name], each[one.name]) if one.name in each else one for one in so_far.tools)
    return replace(so_far, tools=tuple(tools))


def other_steps(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Only the pending steps that the last reply did not call, once the model is stuck.

    A stuck small model repeats a call, or guesses values for it, until the budget is spent. The call is offered again
    one reply later. Not if the result of a step may call for something else.
    """
    if not _gets_nowhere(state.ledger) or unsettled_steps(rules, state):
        return so_far
    called = {attempt.name for attempt in state.ledger.attempts if attempt.turn == state.ledger.turn}
    left = {*pending(rules, state.ledger)} - called
    return _only(so_far, lambda tool: tool.name in left)


def without_refused_call(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Without the call that the last reply made in vain, for this one reply.

    If the tool showed how to write a value, only the rewritten value is offered, because a small model repeats what it
    wrote. A look-up with one text argument that found nothing is offered the values that were seen and not used. If
    there are none, or the look-up failed for good, it is left out as long as another look-up is offered. (A pattern
    that only excludes the old text does not help: a small model writes `Lund-Lund`, `Lund-Lund-Lund`, until its reply
    is cut off.) A tool without arguments is left out unless only writes would remain. Other tools may be right with
    other arguments, and other values for a write must not be suggested.
    """
    if replies_without_progress(state.ledger):
        right = {tool.name: values for tool in so_far.tools if (values := put_right(tool, state))}
        if right:
            limited = (with_enum(one, right[one.name]) if one.name in right else one for one in so_far.tools)
            return replace(so_far, tools=tuple(limited))
    refused = refused_call(state)
    spec = rules.tool(refused.name) if refused else None
    if spec is None or spec.repeatable:
        return so_far
    if spec.properties:
        # Not for a grounded value: of a list, a small model takes a wrong one, where grounding refuses an invented one.
        if spec.grounded or spec.effect != "read" or only_text_argument(spec) is None:
            return so_far
        if values := values_to_try(spec, state):
            return replace(so_far, tools=tuple(with_enum(one, values) if one == spec else one for one in so_far.tools))
        # Another text may be right, so the model must not be pushed to write, or to end, for lack of another look-up.
        left = _only(so_far, lambda tool: tool.name != spec.name)
        return left if any(map(_looks, left.tools)) else so_far
    left = _only(so_far, lambda tool: tool.name != spec.name)
    return left if so_far.words or any(tool.effect != "write" for tool in left.tools) else so_far


def answer_only(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Words alone, if they are an answer and the last reply only repeated a call.

    Only if writes without any rule are on offer: the model may have done what was asked without noticing.
    """
    again = any(attempt.turn == state.ledger.turn for attempt in repeated_attempts(state.ledger))
    if not again or not rules.unruled:
        return so_far
    if so_far.words:
        return replace(so_far, tools=())
    return _only(so_far, lambda tool: rules.on_text == "respond" and tool.name == RESPOND)


NARROWINGS: Mapping[str, Narrowing] = MappingProxyType(
    {
        "last_call": Narrowing(last_call, "one model call is left, to end the run; raise max_iterations"),
        "asked_about": Narrowing(asked_about, "the model was asked whether it means another call"),
        "look_first": Narrowing(
            look_first, 'it can wait until something was looked up; without=["look_first"] offers it at once'
        ),
        "one_by_one": Narrowing(one_by_one, "the other values of its list are left"),
        "other_steps": Narrowing(
            other_steps, 'replies brought nothing new, and other steps are pending; without=["other_steps"] offers all'
        ),
        "refused_call": Narrowing(without_refused_call, "its call was just refused"),
        "answer_only": Narrowing(answer_only, "the last reply only made a call again, so the next one is the answer"),
    }
)
"""Every narrowing, in the order in which they apply, by its name in `Rules.without` and `forge ablate`."""

WITHHELD = "withheld"
"""The `Held.by` of a tool that is not legal (`Rules.withheld`)."""


def why_held(by: str) -> str:
    """Why tools are not offered, in words, and what to do about it."""
    if by == WITHHELD:
        return "it writes, and no required step needs it; optional_steps allows it"
    return NARROWINGS[by].why if by in NARROWINGS else f"the narrowing {by}"


def _only(so_far: Offer, keep: Callable[[ToolSpec], bool]) -> Offer:
    """The offer with only the tools to keep; unchanged if these are all or none."""
    tools = tuple(tool for tool in so_far.tools if keep(tool))
    return replace(so_far, tools=tools) if 0 < len(tools) < len(so_far.tools) else so_far
