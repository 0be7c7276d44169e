"""Guesses: arguments that only stand for a value, and calls that should wait for what others will find."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from stages import nudges
from stages.grounding.matching import normalized, values_within
from stages.grounding.miscalculations import calculation_problems
from stages.grounding.sources import ungrounded_values
from stages.message import Kind, ToolCall, User
from stages.policy.rules import BatchPolicy, Rules, missing, pending
from stages.schema.canonical_json import canonical
from stages.schema.value import Json
from stages.state import State
from stages.tool import ToolSpec

_WRAPPED = re.compile(r"<([^<>]{1,80})>|\{\{([^{}]{1,80})\}\}|\$?\{([^{}]{1,80})\}|\[([^\[\]]{1,80})\]|%([^%]{1,80})%")
_PATH = re.compile(r"\$?(\w{1,80})(?:\(.{0,80}\))?(?:[.\[].{1,80})?")
_WORD = re.compile(r"[^\W_]+")
_SPEAKS_OF_RESULTS = frozenset({"result", "results", "output", "response", "previous", "value", "from", "placeholder"})
_AROUND = frozenset({"your", "the", "my", "some", "a", "an"})
_OPENS = "<{$[%"
"""The characters that a wrapped value may begin with: all others are not looked at by the longer pattern."""

_members: msgspec.json.Decoder[dict[str, Json]] = msgspec.json.Decoder(dict)


def placeholders(call: ToolCall, tools: Mapping[str, ToolSpec], state: State) -> tuple[tuple[str, str], ...]:
    """The arguments of a call that only stand for a value, and what they say: `<customer_id from get_order>`.

    What the user said, and what the tool's schema lists, is a value whatever it looks like.
    """
    found: list[tuple[str, str]] = []
    for name, value in _members.decode(call.arguments).items():
        if isinstance(value, str):
            found += [(name, value)] if _stands_for(value, name, tools) else []
        elif isinstance(value, list | dict):
            texts = [leaf for _, leaf in values_within(value) if isinstance(leaf, str)]
            found += [(name, text) for text in texts if _stands_for(text, name, tools)]
    if not found:
        return ()
    schema = _properties(tools[call.name])
    return tuple((n, text) for n, text in found if not _listed(text, schema.get(n)) and not _said(text, state))


def _stands_for(text: str, name: str, tools: Mapping[str, ToolSpec]) -> bool:
    plain = text.strip()
    if len(plain) > 120:
        return False
    if plain[:1] in _OPENS and (wrapped := _WRAPPED.fullmatch(plain)):
        words = _words(next(group for group in wrapped.groups() if group is not None))
        return not words.isdisjoint(_SPEAKS_OF_RESULTS) or _names(words, name, tools)
    # Most values are none of it, and to see that one is not takes less than to take it apart.
    if _first_word(name) in plain.lower() and _words(plain) - _AROUND == _words(name):
        return True
    if not any(map(plain.__contains__, tools)):
        return False
    path = _PATH.fullmatch(plain)
    return not _words(plain).isdisjoint(_SPEAKS_OF_RESULTS) or (path is not None and path[1] in tools)


def _first_word(text: str) -> str:
    word = _WORD.search(text.lower())
    return word[0] if word else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _names(words: frozenset[str], name: str, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the words name the argument, or any tool."""
    return _words(name) <= words or any(_words(tool) <= words for tool in tools)


def _listed(text: str, schema: Raw | None) -> bool:
    """Whether the argument's schema has the text as a value: an enum, a default."""
    return schema is not None and msgspec.json.encode(text) in bytes(schema)


def _said(text: str, state: State) -> bool:
    wanted = normalized(text)
    said = (m.text for m in state.history if isinstance(m, User) and m.kind is Kind.USER_INPUT)
    return any(wanted in normalized(one) for one in said)


class _Schema(msgspec.Struct):
    properties: dict[str, Raw] = {}


def _properties(tool: ToolSpec) -> dict[str, Raw]:
    return msgspec.json.decode(tool.parameters, type=_Schema).properties


def _policy_of(rules: Rules, state: State) -> BatchPolicy:
    """The workflow's policy; `auto` keeps the first call of a reply whose tools were in the prompt."""
    if rules.batch != "auto":
        return rules.batch
    return "first" if state.sent.mode == "prompted" else "all"


def kept(rules: Rules, state: State, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], str]:
    """The calls that need not wait for others of the same reply, each once, and what the model is told of the rest."""
    if len(calls) == 1:
        return calls, ""
    policy = _policy_of(rules, state)
    if policy == "first":
        return calls[:1], nudges.only_the_first(calls[0].name, [call.name for call in calls[1:]])
    once, again = (calls, ()) if rules.max_repeats is None else _once(rules, calls)
    go, waiting = _independent(rules, state, once) if policy == "independent" else (once, "")
    return go, "\n".join(filter(None, (nudges.made_once(again) if again else "", waiting)))


def _once(rules: Rules, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], tuple[str, ...]]:
    """The calls without those that stand in the same reply already, and the names of the tools that had such.

    A model that repeats itself has not seen an answer yet, so it cannot want another; what is `repeatable` it can.
    """
    free = {tool.name for tool in rules.tools if tool.repeatable}
    first: dict[tuple[str, str], ToolCall] = {}
    for call in calls:
        key = (call.name, call.id if call.name in free else canonical(call.arguments))
        first.setdefault(key, call)
    kept = tuple(first.values())
    made = {call.id for call in kept}
    return kept, tuple(dict.fromkeys(call.name for call in calls if call.id not in made))


def _independent(rules: Rules, state: State, calls: tuple[ToolCall, ...]) -> tuple[tuple[ToolCall, ...], str]:
    tools = {tool.name: tool for tool in rules.tools}
    go: list[ToolCall] = []
    wait: list[ToolCall] = []
    for call in calls:
        (wait if go and _depends(call, tools[call.name], tools, rules, state) else go).append(call)
    notice = nudges.waits([call.name for call in go], [call.name for call in wait]) if wait else ""
    return tuple(go), notice


def _depends(call: ToolCall, tool: ToolSpec, tools: Mapping[str, ToolSpec], rules: Rules, state: State) -> bool:
    """Whether the call cannot be right before an earlier one of its reply has been answered."""
    if tool.effect == "terminal" and pending(rules, state.ledger):
        return True
    if missing(tool, call.arguments, state.ledger) or placeholders(call, tools, state):
        return True
    if tool.grounded and ungrounded_values(tool, call.arguments, state):
        return True
    return bool(tool.calculated) and bool(calculation_problems(tool, call.arguments, state))
