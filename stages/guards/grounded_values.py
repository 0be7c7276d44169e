"""Grounding: no call with a value that nobody gave. A required step proves that a tool ran, not that it was used.

What counts as given is what the user said and what tools answered, errors too. An answer is no evidence for what it
repeats of its own call. What a value shows is in `stages.grounding.matching`.
"""

import msgspec

from stages import nudges
from stages.grounding.sources import Given, found_in, given_in, relevant, ungrounded_values
from stages.message import Kind, ToolCall
from stages.policy.escalation import offered_tools
from stages.policy.rules import Rules
from stages.schema.value import Json
from stages.state import State
from stages.tool import Grounded, ToolSpec
from stages.verdict import Allow, Block, Correction, Guard, Verdict


def grounding(rules: Rules) -> Guard:
    """Block a batch with a call that has an ungrounded value. Counts as a refusal; the budget bounds it."""
    bound = {tool.name: tool for tool in rules.tools if tool.grounded}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        if not any(call.name in bound for call in calls):
            return Allow()
        found = {c.id: ungrounded_values(bound[c.name], c.arguments, state) for c in calls if c.name in bound}
        if not any(found.values()):
            return Allow()
        given = given_in(state)
        corrections = (
            Correction(call_id=c.id, text=_text(rules, state, bound[c.name], found[c.id], given))
            if found.get(c.id)
            else Correction(call_id=c.id, text=nudges.beside_a_refused_call(c.name), beside=True)
            for c in calls
        )
        return Block(kind=Kind.RETRY_NUDGE, counter="refusals", corrections=tuple(corrections))

    return guard


def _text(
    rules: Rules, state: State, tool: ToolSpec, found: tuple[tuple[Grounded, Json], ...], given: tuple[Given, ...]
) -> str:
    problems = [nudges.not_seen(bound.argument, _json(value), bound.sources) for bound, value in found]
    seen = [(b.argument, _json(value), source) for b, v in found for value, source in _instead(b, v, given)]
    if seen:
        return nudges.ungrounded(tool.name, problems, nudges.where_seen(tool.name, seen))
    others = [other.name for other in offered_tools(rules, state) if other.name != tool.name]
    return nudges.ungrounded(tool.name, problems, nudges.find_first(others))


def _instead(bound: Grounded, value: Json, given: tuple[Given, ...]) -> tuple[tuple[Json, str], ...]:
    """The latest values that tools gave for it: under the argument's own name, else any of its type; three at most."""
    known = [(n, leaf, one.tool) for one in relevant(bound, given) if one.tool for n, leaf in found_in(one) if n]
    named = [(leaf, source) for name, leaf, source in known if name == bound.argument]
    alike = [(leaf, source) for _, leaf, source in known if isinstance(leaf, str) is isinstance(value, str)]
    return tuple(dict.fromkeys(reversed(named or alike)))[:3]


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
