"""The stage `reword`: the user's own words in the place of forge's corrections. The mistake is counted all the same."""

import re
from collections.abc import Callable, Mapping
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages.halt import Halt
from stages.message import History, Message, System, Tool, User, is_nudge
from stages.pipeline import Stage, on
from stages.policy.rules import Rules, legal_tools, pending
from stages.repair.decoding import sound
from stages.state import Ledger, Ready, State

NudgeKind = Literal[
    "retry",
    "unknown_tool",
    "arguments",
    "step",
    "prerequisite",
    "repeated",
    "ungrounded",
    "miscalculated",
    "placeholder",
    "order",
    "incomplete",
    "provenance",
]
"""`retry`: a reply without a call that can be used. The others answer a call: of no tool, with arguments that do not
fit, before its steps, before its prerequisites, made before with the same answer, with a value that nobody gave, with
a calculation that cannot be used, with a placeholder for a value, against a rule of order, and one whose arguments
the user's own check refuses. `provenance`: a reply whose calls only repeat what was shown or done before."""

PREFIXES: Mapping[str, NudgeKind] = {
    "UnknownTool": "unknown_tool",
    "ToolArgValidationError": "arguments",
    "StepEnforcementError": "step",
    "PrereqError": "prerequisite",
    "Repeated": "repeated",
    "UngroundedArgument": "ungrounded",
    "Miscalculated": "miscalculated",
    "Placeholder": "placeholder",
    "OrderError": "order",
    "Incomplete": "incomplete",
    "Repeats": "provenance",
}
"""What forge's own texts begin with, in brackets; it stays in front of the user's."""

_PREFIX = re.compile(r"\[(\w+)\] ")


class Correction(Struct, frozen=True, kw_only=True):
    """What went wrong. `text` is what forge would say, `tool` the tool that was called, empty for a bare reply.

    `allowed` are the tools that may be called now, `pending` the required steps that are left. `attempt` counts the
    mistakes that share a limit with this one (in a row; from `repeated` on: in the whole run), it included.
    """

    kind: NudgeKind
    text: str
    tool: str
    allowed: tuple[str, ...]
    pending: tuple[str, ...]
    attempt: int


Reword = Callable[[Correction], str]
"""A pure function from what went wrong to what the model is told."""


def reword(rules: Rules, texts: Mapping[NudgeKind, Reword]) -> Stage:
    """At the end of a turn, put the corrections that it brought in the user's words.

    Raises TypeError for a function that gives no text: the model would be told nothing.
    """

    @on(Ready)
    def stage(state: State, _: Ready) -> State | Halt:
        first = _first_of_turn(state.history, state.ledger.turn)
        new = state.history[first:]
        said = tuple(_said(state, rules, texts, new, index) for index in range(len(new)))
        if all(after is before for after, before in zip(said, new, strict=True)):
            return state
        return replace(state, history=state.history[:first] + said)

    return stage


def _first_of_turn(history: History, turn: int) -> int:
    """Where the messages of that turn begin, at the end of the history."""
    first = len(history)
    while first and not isinstance(last := history[first - 1], System) and last.turn == turn:
        first -= 1
    return first


def _said(
    state: State, rules: Rules, texts: Mapping[NudgeKind, Reword], new: tuple[Message, ...], index: int
) -> Message:
    message = new[index]
    if not isinstance(message, User | Tool) or not is_nudge(message):
        return message
    prefix = _PREFIX.match(message.text)
    # A word after the results of calls is no answer to a bare reply: it says which call could not be read.
    after_results = index > 0 and isinstance(new[index - 1], Tool)
    kind = PREFIXES.get(prefix[1]) if prefix else "retry" if isinstance(message, User) and not after_results else None
    if kind is None or kind not in texts or (kind == "step" and not _ends(message, rules)):
        return message
    text = texts[kind](_correction(state, rules, kind, message, prefix))
    if not isinstance(text, str) or not text.strip():
        raise TypeError(f"the function for nudges of the kind {kind!r} returned {text!r}; it must return a string")
    return replace(message, text=sound(f"{prefix[0]}{text}" if prefix else text))


def _ends(message: User | Tool, rules: Rules) -> bool:
    """Whether it answers the terminal call itself: calls beside it are told to come again, not to wait."""
    return isinstance(message, Tool) and message.name in rules.terminal


def _correction(
    state: State, rules: Rules, kind: NudgeKind, message: User | Tool, prefix: re.Match[str] | None
) -> Correction:
    ledger = state.ledger
    return Correction(
        kind=kind,
        text=message.text[prefix.end() :] if prefix else message.text,
        tool=message.name if isinstance(message, Tool) else "",
        allowed=tuple(tool.name for tool in legal_tools(rules, ledger)),
        pending=pending(rules, ledger),
        attempt=_attempt(kind, ledger),
    )


def _attempt(kind: NudgeKind, ledger: Ledger) -> int:
    match kind:
        case "retry" | "unknown_tool" | "provenance":
            return ledger.retries
        case "arguments":
            return ledger.tool_errors
        case "step":
            return ledger.premature
        case "prerequisite":
            return ledger.prerequisite_violations
        case "repeated":
            return ledger.repetitions
        case "ungrounded" | "miscalculated" | "placeholder" | "order" | "incomplete":
            return ledger.refusals
        case _:
            assert_never(kind)
