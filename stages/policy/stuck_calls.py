"""Stuck tools: called again as they were answered or refused before, or, to look something up, with made-up texts.

A value that nobody gave may still be right once. Tried again, each time with another one, it is guessing: it ends only
with the budget, and no call of it is like another.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from stages.grounding.matching import leaves
from stages.grounding.sources import unseen_values
from stages.policy.progress import attempts_since_progress, repeated_attempts
from stages.policy.rules import Rules
from stages.schema.canonical_json import canonical
from stages.schema.value import Json
from stages.state import Attempt, Ledger, State
from stages.tool import Grounded, ToolSpec


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
