"""Grounding: no call with a value that nobody gave (D31). A required step proves that a tool ran, not that it was used.

What counts as given is what the user said and what tools answered; an answer that is an error counts too, but not for
what it repeats of its own call. What a value shows is in `stages.evidence`.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from stages import nudges
from stages.evidence import evidence, fields, leaves
from stages.ladder import offered
from stages.message import Assistant, Kind, Tool, ToolCall, User
from stages.rules import Rules
from stages.schema.value import Json
from stages.state import State
from stages.tool import Grounded, ToolSpec
from stages.verdict import Allow, Block, Correction, Guard, Verdict


class Given(Struct, frozen=True, kw_only=True):
    """One thing that the model was given: by a tool, or, with an empty name, by the user.

    `echo` are the values that do not count, because the call that was answered had brought them in.
    """

    tool: str
    text: str
    echo: tuple[Json, ...] = ()


def grounding(rules: Rules) -> Guard:
    """Block a batch with a call that has an ungrounded value. Counts as a refusal; the budget bounds it."""
    bound = {tool.name: tool for tool in rules.tools if tool.grounded}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        if not any(call.name in bound for call in calls):
            return Allow()
        given = tuple(_given(state))
        found = {c.id: ungrounded(bound[c.name], c.arguments, given) for c in calls if c.name in bound}
        if not any(found.values()):
            return Allow()
        corrections = (
            Correction(call_id=c.id, text=_text(rules, state, bound[c.name], found[c.id], given))
            if found.get(c.id)
            else Correction(call_id=c.id, text=nudges.beside_a_refused_call(c.name), beside=True)
            for c in calls
        )
        return Block(kind=Kind.RETRY_NUDGE, counter="refusals", corrections=tuple(corrections))

    return guard


def ungrounded(tool: ToolSpec, arguments: str, given: tuple[Given, ...]) -> tuple[tuple[Grounded, Json], ...]:
    """The arguments of a call that must have been seen and were not, with their values."""
    values = msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
    wanted = [(g, msgspec.json.decode(values[g.argument])) for g in tool.grounded if g.argument in values]
    return tuple((bound, value) for bound, value in wanted if not _shown(value, _relevant(bound, given)))


def _relevant(bound: Grounded, given: tuple[Given, ...]) -> tuple[Given, ...]:
    return tuple(one for one in given if one.tool in bound.sources) if bound.sources else given


def _shown(value: Json, given: tuple[Given, ...]) -> bool:
    whole = evidence(one.text for one in given if not one.echo)
    return all(whole.shows(leaf) or _beyond_echo(leaf, given) for leaf in leaves(msgspec.json.encode(value).decode()))


def _beyond_echo(leaf: Json, given: tuple[Given, ...]) -> bool:
    """Whether an error names the value by itself, not as what its own call had brought in."""
    return any(
        evidence((one.text,)).shows(leaf) and not evidence(map(_json, one.echo)).shows(leaf)
        for one in given
        if one.echo
    )


def _given(state: State) -> Iterator[Given]:
    """What stands in the history, and what compaction cut from it."""
    for entry in state.cleared:
        yield Given(tool=entry.name, text=entry.text)
    arguments: dict[str, str] = {}
    for message in state.history:
        match message:
            case User(kind=Kind.USER_INPUT, text=text):
                yield Given(tool="", text=text)
            case Assistant(calls=calls):
                arguments.update((call.id, call.arguments) for call in calls)
            case Tool(kind=Kind.TOOL_RESULT, status=status, name=name, text=text, call_id=call_id):
                echo = () if status == "succeeded" else tuple(leaves(arguments.get(call_id, "{}")))
                yield Given(tool=name, text=text, echo=echo)
            case _:
                pass


def _text(
    rules: Rules, state: State, tool: ToolSpec, found: tuple[tuple[Grounded, Json], ...], given: tuple[Given, ...]
) -> str:
    problems = [nudges.not_seen(bound.argument, _json(value), bound.sources) for bound, value in found]
    seen = [(b.argument, _json(value), source) for b, v in found for value, source in _instead(b, v, given)]
    if seen:
        return nudges.ungrounded(tool.name, problems, nudges.where_seen(tool.name, seen))
    others = [other.name for other in offered(rules, state.ledger) if other.name != tool.name]
    return nudges.ungrounded(tool.name, problems, nudges.find_first(others))


def _instead(bound: Grounded, value: Json, given: tuple[Given, ...]) -> tuple[tuple[Json, str], ...]:
    """The latest values that tools gave for it: under the argument's own name, else any of its type; three at most."""
    known = [(n, leaf, one.tool) for one in _relevant(bound, given) if one.tool for n, leaf in fields(one.text) if n]
    named = [(leaf, source) for name, leaf, source in known if name == bound.argument]
    alike = [(leaf, source) for _, leaf, source in known if isinstance(leaf, str) is isinstance(value, str)]
    return tuple(dict.fromkeys(reversed(named or alike)))[:3]


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
