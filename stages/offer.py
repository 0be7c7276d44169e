"""The offer: what the next reply may be, computed by a table of named narrowings.

A narrowing makes an offer smaller, but never forbids what the rules allow: it decides only what a constraint offers and
what a correction suggests. A legal call that was not offered still runs, and a narrowing that would leave nothing is
ignored. So no narrowing can end a workflow.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from toolz import unique

from stages._later import LazyPattern
from stages.decoding import decode_or
from stages.execution import call_digest
from stages.message import Assistant, Kind, Tool, ToolCall, is_user_input
from stages.progress import PATIENCE, attempts_since_progress, repeated_attempts, replies_without_progress
from stages.rules import (
    UNKNOWN_OUTCOME,
    Rules,
    listed_values_left,
    needed_tools,
    obstacles,
    pending,
    unsettled_steps,
    welcomes_words,
    with_spoken,
)
from stages.schema.value import Json, json_members, optional_members
from stages.seen import normalized, with_shown
from stages.state import Held, Ledger, State
from stages.tool import RECALL, RESPOND, ToolSpec


class Offer(Struct, frozen=True, kw_only=True):
    """What the next reply may be: a call of one of these `tools`, or words; without tools, words alone.

    A tool is one of the rules' own, some with a narrower schema. `words`: words are an answer. `held` lists what was
    left out of the legal calls, and by which narrowing, and the tools that may not be called for reasons of `_BARRED`.
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
    """What the next reply may be: at least one of the legal tools, if any is legal, or words where they are an answer.

    `Rules.without` names the narrowings that are off.
    """
    barred = obstacles(rules, state)
    so_far = Offer(
        tools=tuple(tool for tool in rules.tools if tool.name not in barred),
        words=welcomes_words(rules, state.ledger),
        held=tuple(Held(tool=name, by=by) for name, by in barred.items() if by in _BARRED),
    )
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
    changed = (tool.name for tool in before.tools if left.get(tool.name) != tool)
    return tuple(Held(tool=name, by=by, values=name in left) for name in changed)


def offered_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools on offer: some of the legal ones; none where words alone are left."""
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

    No further model call could use what another tool finds. A message of the user's begins a new budget.
    """
    ends = tuple(tool for tool in so_far.tools if tool.effect == "terminal")
    begins = not state.ledger.turn or (state.history and is_user_input(state.history[-1]))
    if state.ledger.budget.calls != 1 or begins or not ends:
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
    """Only the pending steps that the last reply did not call, once the model is stuck; every second reply at most.

    A stuck small model repeats a call, or guesses values for it, until the budget is spent. But the values may be wrong
    because a tool that is no step has to find them. Not if the result of a step may call for something else.
    """
    held_now = any(one.by == "other_steps" for one in state.prompt.held)
    if held_now or not _gets_nowhere(state.ledger) or unsettled_steps(rules, state):
        return so_far
    called = {attempt.name for attempt in state.ledger.attempts if attempt.turn == state.ledger.turn}
    left = {*pending(rules, state.ledger)} - called
    return _only(so_far, lambda tool: tool.name in left)


def proposed_values(_: Rules, state: State, so_far: Offer) -> Offer:
    """Only the values that a tool's error message proposes instead of the refused one, for this one reply.

    After `use four digits, such as '0007'`, 29 is offered as 0029. After `There is a 'Petterson-Lund'.` a look-up for
    Petersen is offered that name, because it is spelled much like the refused one. A small model repeats what it wrote.
    Not values already tried, and none for a tool that needs more than one text, or is terminal: its value must not be
    guessed.
    """
    said, answers = _last_exchange(state)
    refused = [(m, call) for m in answers for call in said.calls if call.id == m.call_id and m.status in _MENDABLE]
    if not refused:
        return so_far
    earlier = [(one.name, one.arguments) for one in attempts_since_progress(state.ledger)]
    earlier += [(one.name, one.arguments) for one in state.ledger.successes[-_RECENT:]]

    def limited(tool: ToolSpec) -> ToolSpec:
        argument = needed_text(tool) if tool.effect != "terminal" else None
        if argument is None:
            return tool
        texts = [(m.text, _text_of(call.arguments, argument)) for m, call in refused if call.name == tool.name]
        tried = {_text_of(arguments, argument) for name, arguments in earlier if texts and name == tool.name}
        found = (one for text, value in texts for one in _proposed(text, value, quoted=tool.effect == "read"))
        values = tuple(value for value in unique(found) if value not in tried)
        return with_enum(tool, values, argument) if values else tool

    tools = tuple(map(limited, so_far.tools))
    return so_far if tools == so_far.tools else replace(so_far, tools=tools)


def without_refused_call(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Without the call that was just refused, for this one reply.

    A look-up that needs one text is left out as long as another look-up is offered. (A pattern that only excludes the
    old text does not help: a small model writes `Lund-Lund`, `Lund-Lund-Lund`, until its reply is cut off.) A tool
    without arguments is left out unless only writes would remain. Other tools may be right with other arguments.
    """
    refused = refused_call(state)
    spec = rules.tool(refused.name) if refused else None
    if spec is None or spec.repeatable:
        return so_far
    left = _only(so_far, lambda tool: tool.name != spec.name)
    if spec.properties:
        # Another text may be right, so the model must not be pushed to write, or to end, for lack of another look-up.
        may_go = not spec.grounded and spec.effect == "read" and needed_text(spec) is not None
        return left if may_go and any(map(_looks, left.tools)) else so_far
    return left if so_far.words or any(tool.effect != "write" for tool in left.tools) else so_far


def answer_only(rules: Rules, state: State, so_far: Offer) -> Offer:
    """Words alone, if they are an answer and the model repeats a call; if it has written something, only the next time.

    Only if writes without any rule are on offer: the model may have done what was asked without noticing. If it has
    only looked something up, its answer is asked about once, with all tools on offer (`may_have_meant_a_call`). If not,
    it is told first that it repeats a call, because the same tool may be meant with other arguments.
    """
    repeated = repeated_attempts(state.ledger)
    if not repeated or not rules.unruled:
        return so_far
    wrote = any(one.name in rules.writes for done in (repeated, state.ledger.successes) for one in done)
    if len({attempt.turn for attempt in repeated}) <= (wrote or "ask_once" in rules.without):
        return so_far
    if so_far.words:
        return replace(so_far, tools=())
    return _only(so_far, lambda tool: rules.on_text == "respond" and tool.name == RESPOND)


NARROWINGS: Mapping[str, Narrowing] = MappingProxyType(
    {
        "last_call": Narrowing(last_call, "one model call is left, to end the run; raise max_iterations"),
        "asked_about": Narrowing(asked_about, "the model was asked whether it means another call"),
        "look_first": Narrowing(look_first, "it can wait until something was looked up"),
        "one_by_one": Narrowing(one_by_one, "the other values of its list are left"),
        "other_steps": Narrowing(other_steps, "replies brought nothing new, and other steps are pending"),
        "proposed_values": Narrowing(proposed_values, "its error message proposes other values than the refused one"),
        "refused_call": Narrowing(without_refused_call, "its call was just refused"),
        "answer_only": Narrowing(answer_only, "the model only makes a call again, so the next reply is the answer"),
    }
)
"""Every narrowing, in the order in which they apply, by its name in `Rules.without` and `forge ablate`."""

_BARRED = {
    "withheld": "it writes, and no required step needs it; optional_steps allows it",
    UNKNOWN_OUTCOME: "the outcome of an earlier call is unknown; with ask=, a person can settle it",
}
"""Why a tool may not be called though it is no matter of what comes first, and what to do about it."""


def why_held(by: str) -> str:
    """Why tools are not offered, in words, and what to do about it."""
    if by in NARROWINGS:
        return f'{NARROWINGS[by].why}; without=["{by}"] turns this off'
    return _BARRED.get(by, f"the narrowing {by}")


def _only(so_far: Offer, keep: Callable[[ToolSpec], bool]) -> Offer:
    """The offer with only the tools to keep; unchanged if these are all or none.

    To leave words alone, replace its tools by ().
    """
    tools = tuple(tool for tool in so_far.tools if keep(tool))
    return replace(so_far, tools=tools) if 0 < len(tools) < len(so_far.tools) else so_far


# A call that was refused, and values that its tool proposes in its error message.

_LONGEST = 40
"""Maximum characters of a value for which others are proposed."""


def refused_call(state: State) -> ToolCall | None:
    """The only call of the last reply, if a guard, a person or the tool itself refused it.

    None if the user has said something since. A call that raised or found nothing was not refused, because a retry may
    succeed, or other arguments find something. After a reply of several calls, those beside the refused one should be
    made again.
    """
    match _last_exchange(state):
        case Assistant(calls=(call,)), [answer]:
            by_guard, by_tool = answer.kind is not Kind.TOOL_RESULT, answer.status == "final"
            # Other calls that did not run are to be made again.
            by_person = answer.status == "not_run" and call_digest(call) in state.ledger.rejected
            return call if by_guard or by_tool or by_person else None
        case _:
            return None


def _last_exchange(state: State) -> tuple[Assistant, list[Tool]]:
    """The last reply and the answers to its calls; an empty one if the user has said something since."""
    recent = [*takewhile(lambda m: not isinstance(m, Assistant), reversed(state.history))]
    said = state.history[-1 - len(recent)] if len(recent) < len(state.history) else None
    if not isinstance(said, Assistant) or any(map(is_user_input, recent)):
        return Assistant(), []
    return said, [m for m in recent if isinstance(m, Tool)]


def _proposed(text: str, value: str, *, quoted: bool) -> Iterator[str]:
    """The values that an error message proposes for this one: in the form of its examples, or `quoted` and like it."""
    examples = tuple(found.rstrip(".,;:)") for found in _EXAMPLE.compiled.findall(text[:_MESSAGE]))
    yield from filter(None, (in_the_form_of(example, value) for example in examples))
    others = [next(filter(None, groups)) for groups in _QUOTED.compiled.findall(text[:_MESSAGE])] if quoted else ()
    yield from (other for other in unique(others) if not other.startswith(examples) and _is_like(value, other))


def _is_like(value: str, other: str) -> bool:
    """Whether the other value is spelled much like this one, with the same digits: `A-18` is another than `A-17`."""
    import difflib  # noqa: PLC0415 - only a mistake needs it

    one, two = normalized(value), normalized(other)
    alike = difflib.SequenceMatcher(None, one, two)
    same = [*filter(str.isdigit, one)] == [*filter(str.isdigit, two)]
    return one != two and same and alike.quick_ratio() >= _LIKE and alike.ratio() >= _LIKE


_LIKE = 0.6
"""Minimum likeness of two values, that of `difflib.get_close_matches`: `Petersen` and `Petterson-Lund` have 0.64."""

_MENDABLE = ("unresolved", "failed")
"""The outcomes of a call that another value may put right."""

_RECENT = 256
"""Maximum successes that are searched for tried values, so that a turn costs the same however long the run is."""


def _text_of(arguments: str, argument: str) -> str:
    """The value of a text argument; empty if it is none, as a proxy's client may send any history."""
    value = decode_or(json_members, arguments, {}).get(argument)
    return value.strip() if isinstance(value, str) and len(value) <= _LONGEST else ""


_MESSAGE = 2_000
"""Characters of an error message that are read."""

_QUOTED = LazyPattern(r"""(?<!\w)'([^'\n]{1,40})'(?!\w)|"([^"\n]{1,40})"|`([^`\n]{1,40})`""")
"""A text in quotation marks of some kind; an apostrophe is none."""


_MOST_IN_ENUM = 64
"""Maximum values of one `enum`."""

_DIGITS = 20
"""Maximum characters of a whole number that may be an id."""


def with_enum(tool: ToolSpec, values: tuple[str, ...], argument: str) -> ToolSpec:
    """The tool with that argument limited to the first of these values.

    Unchanged if the argument is no text or whole number, or if its schema lists its values.
    """
    schema = msgspec.json.decode(tool.parameters, type=dict[str, Raw])
    own: Json = msgspec.json.decode(tool.properties.get(argument, b"{}"))
    if not isinstance(own, dict) or own.keys() & {"enum", "const"}:
        return tool
    kind = own.get("type")
    first = values[:_MOST_IN_ENUM]
    if kind == "integer":
        allowed: list[Json] = [int(v) for v in first if v.removeprefix("-").isdecimal() and len(v) < _DIGITS]
    else:
        allowed = [*first] if kind == "string" else []
    if len(allowed) < len(first):
        return tool
    limited = {argument: Raw(msgspec.json.encode(own | {"enum": allowed}))}
    schema["properties"] = Raw(msgspec.json.encode(tool.properties | limited))
    return replace(tool, parameters=Raw(msgspec.json.encode(schema)))


def needed_text(tool: ToolSpec) -> str | None:
    """The only required argument or, if none is required, the only one; None if it is no text, or is calculated."""
    schema: dict[str, Json] = msgspec.json.decode(tool.parameters, type=dict)
    properties = schema.get("properties")
    if tool.calculated or not isinstance(properties, dict):
        return None
    optional = optional_members(schema)
    match [name for name in properties if name not in optional] or [*properties]:
        case [name] if isinstance(kind := properties[name], dict) and kind.get("type") == "string":
            return None if "enum" in kind else name
        case _:
            return None


_EXAMPLE = LazyPattern(
    r"\b(?:as in|e\.g\.|for example|for instance|such as|like)[:,]? ?[\"'`]?([^\s\"'`]{2,60})", re.IGNORECASE
)
"""An example in a text."""


_PART = LazyPattern(r"\d+|[^\W\d_]+|[\W_]+")
"""Digits, letters, or other characters."""

_FRACTION = LazyPattern(r"\d+[.,]\d+")
"""A decimal number; padding its fraction with zeros would make it another number."""


def in_the_form_of(example: str, value: str) -> str | None:
    """The value written like the example: 19 like 0007 as `0019`, 2024/3/7 like 2023-05-01 as `2024-03-07`.

    Digits are padded with zeros if the example's begin with one, ASCII letters take its case, and the characters in
    between are the example's. None if the value has other parts, or already has this form, or if the example is just a
    word, which may be any.
    """
    parts = _PART.compiled.findall(example)
    if not (example.isupper() or any(map(str.isdecimal, parts))) or _FRACTION.compiled.fullmatch(example):
        return None
    if not (value[:1].isalnum() and value[-1:].isalnum()):
        return None
    models = [part for part in parts if part.isalnum()]
    runs = [part for part in _PART.compiled.findall(value) if part.isalnum()]
    if len(models) != len(runs):
        return None
    written = [_like(model, run) for model, run in zip(models, runs, strict=True)]
    left = iter(written)
    text = "".join((next(left) or "") if part.isalnum() else part for part in parts)
    return None if None in written or text == value else text


def _like(model: str, run: str) -> str | None:
    """The digits or letters in the form of the example; None if they cannot have it."""
    if model.isdecimal() != run.isdecimal():
        return None
    if not model.isdecimal():
        if not run.isascii():
            return run  # changing the case of some letters gives another letter
        return run.upper() if model.isupper() else run.lower() if model.islower() else run
    if len(run) < len(model) and model.startswith("0"):
        return run.zfill(len(model))
    return run if len(run) == len(model) else None
