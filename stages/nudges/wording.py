"""Wording: a user's own words in the place of forge's, by the kind of objection. It is counted all the same."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from stages.ledger import mistake_count
from stages.nudges.rendering import prefixed, render, unprefixed
from stages.objection import Objection, Wrong
from stages.policy.mistakes import NudgeKind, mistake_of
from stages.policy.rules import Rules, legal_tools, pending
from stages.repair.decoding import sound
from stages.state import State

Say = Callable[[State, Objection], str]
"""What the model is told of an objection, in a state that has counted it."""


class Correction(Struct, frozen=True, kw_only=True):
    """What went wrong. `text` is what forge would say, `tool` the tool that was called, empty for a bare reply.

    `allowed` are the tools that may be called now, `pending` the required steps that are left. `attempt` counts the
    mistakes that share a limit with this one (in a row; from `repeated` on: in the whole run), it included. `wrong` has
    the facts, a struct of `stages.objection`.
    """

    kind: NudgeKind
    text: str
    tool: str
    allowed: tuple[str, ...]
    pending: tuple[str, ...]
    attempt: int
    wrong: Wrong


Reword = Callable[[Correction], str]
"""A pure function from what went wrong to what the model is told."""


def in_forges_words(_: State, objection: Objection) -> str:
    """What forge itself says."""
    return render(objection)


def in_own_words(rules: Rules, words: Mapping[NudgeKind, Reword]) -> Say:
    """What the user says, where they have words for that kind of objection; the prefix stays in front.

    Raises TypeError for words that give no text: the model would be told nothing.
    """

    def say(state: State, objection: Objection) -> str:
        mistake = mistake_of(objection.wrong)
        if mistake.name is None or mistake.name not in words:
            return render(objection)
        correction = Correction(
            kind=mistake.name,
            text=unprefixed(objection),
            tool=objection.tool,
            allowed=tuple(tool.name for tool in legal_tools(rules, state)),
            pending=pending(rules, state.ledger),
            attempt=mistake_count(state.ledger, mistake.counter),
            wrong=objection.wrong,
        )
        text = words[mistake.name](correction)
        if not isinstance(text, str) or not text.strip():
            raise TypeError(
                f"the function for nudges of the kind {mistake.name!r} returned {text!r}; it must return a string"
            )
        return sound(prefixed(objection, text))

    return say
