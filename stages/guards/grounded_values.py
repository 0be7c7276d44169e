"""Grounding: no call with a value that nobody gave. A required step proves that a tool ran, not that it was used.

What counts as given is what the user said and what tools answered, errors too. An answer is no evidence for what it
repeats of its own call. What a value shows is in `stages.grounding.matching`.
"""

import msgspec

from stages.execution.unknown_outcomes import unknown_outcome
from stages.grounding.identifiers import is_own
from stages.grounding.matching import leaves
from stages.grounding.sources import (
    given_latest_first,
    possible_sources,
    ungrounded_values,
    values_given_by,
    values_nowhere,
)
from stages.message import ToolCall
from stages.objection import Objection, Seen, Ungrounded, Unseen
from stages.policy.escalation import offered_tools
from stages.policy.rules import Rules
from stages.schema.nullable_members import optional_members
from stages.schema.value import Json
from stages.state import State
from stages.tool import Grounded, ToolSpec
from stages.verdict import Guard, Verdict

_MadeUp = tuple[tuple[Grounded, Json], ...]


def grounding(rules: Rules) -> Guard:
    """Object to calls that have an ungrounded value. Counts as a refusal; the budget bounds it."""
    bound = {tool.name: tool for tool in rules.tools if tool.grounded}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        found = [
            (call, made_up)
            for call in calls
            if call.name in bound and (made_up := ungrounded_values(bound[call.name], call.arguments, state))
        ]
        return [Objection(call=call, wrong=_wrong(rules, state, bound[call.name], made_up)) for call, made_up in found]

    return guard


def _wrong(rules: Rules, state: State, tool: ToolSpec, made_up: _MadeUp) -> Ungrounded:
    # What it could be called with instead is not said while a person has to decide about a call of it.
    waits = unknown_outcome(tool, state.ledger) is not None
    optional = optional_members(msgspec.json.decode(tool.parameters, type=dict))
    values = tuple(
        Unseen(
            argument=b.argument,
            value=_json(value),
            sources=b.sources,
            optional=b.argument in optional,
            no_id=not values_nowhere([*leaves(_json(value))], b, state),
        )
        for b, value in made_up
    )
    seen = tuple(
        Seen(name=b.argument, value=_json(value), tool=source)
        for b, v in made_up
        if not waits
        for value, source in _instead(b, v, state, optional=b.argument in optional)
    )
    others = () if seen else tuple(other.name for other in offered_tools(rules, state) if other.name != tool.name)
    return Ungrounded(values=values, seen=seen, others=others)


_PROPOSED = 3


def _instead(bound: Grounded, value: Json, state: State, *, optional: bool) -> tuple[tuple[Json, str], ...]:
    """The latest values that tools gave for it: under the argument's own name, else any of its type; three at most.

    What can be left out is not filled with any value of its type.
    """
    alike = dict[tuple[Json, str], None]()
    named = dict[tuple[Json, str], None]()
    for one in given_latest_first(state):
        if not one.tool or not possible_sources(bound, (one,)):
            continue
        known = [(n, leaf) for n, leaf in values_given_by(one) if n or leaf is not one.text]
        for name, leaf in reversed(known):
            if is_own(bound, name, one.tool):
                named[leaf, one.tool] = None
            if isinstance(leaf, str) is isinstance(value, str):
                alike[leaf, one.tool] = None
        if len(named) >= _PROPOSED:
            break  # a long history is not read to its beginning
    return tuple(named or ({} if optional else alike))[:_PROPOSED]


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
