"""The meaning of a typed line: slash commands, and undo."""

import re

from msgspec import Struct

from stages.effect import Said
from stages.memory import branched
from stages.message import Kind, Message, User
from stages.options import did_you_mean
from stages.state import Done, State

# Slash commands as values. Pure.


class Spoken(Struct, frozen=True):
    """A message for the agent."""

    text: str


class SlashCommand(Struct, frozen=True):
    """A known command with its argument."""

    name: str
    argument: str = ""


class Mistyped(Struct, frozen=True):
    """A line that looks like a command but is not valid: the problem, as a sentence."""

    problem: str


TypedLine = Spoken | SlashCommand | Mistyped


HELP = {
    "help": ("", "these commands and keys"),
    "tools": ("", "the agent's tools, and which need approval"),
    "context": ("", "context used by the next prompt"),
    "model": ("[NAME]", "show or switch the model"),
    "thinking": ("", "show the model's last thought in full"),
    "save": ("NAME", "save a copy of the conversation"),
    "load": ("[NAME]", "load a conversation; without a name, list them"),
    "continue": ("", "continue an unfinished message"),
    "undo": ("", "remove your last message and everything after it"),
    "remember": ("FACT", "remember a fact for all conversations in this folder"),
    "facts": ("", "list remembered facts with their numbers"),
    "forget": ("NUMBER", "forget a fact"),
    "exit": ("", "exit; the conversation is saved"),
}
"""The argument of each command, in brackets if optional, and its description; in the order of `/help`."""

_COMMAND = re.compile(r"/([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)


def typed_line(line: str) -> TypedLine:
    """The meaning of the line. A leading space makes it a message, and so does a path."""
    found = _COMMAND.fullmatch(line.rstrip())
    if found is None:
        return Spoken(line.strip())
    name, argument = found[1].lower(), (found[2] or "").strip()
    if name not in HELP:
        meant = did_you_mean(name, HELP)
        return Mistyped(
            f"there is no command /{name}; /help lists them.{meant} A space before the / makes it a message."
        )
    takes, _ = HELP[name]
    if argument and not takes:
        return Mistyped(f"/{name} takes no argument")
    if not argument and takes and not takes.startswith("["):
        return Mistyped(f"usage: /{name} {takes}")
    return SlashCommand(name, argument)


# Undo: the conversation without the user's last message and what followed. Pure.


def taken_back(state: State) -> tuple[State, str] | None:
    """The conversation without the user's last message, and that message; None if there is none.

    Facts shown before the message are removed with it.
    """
    history = state.history
    at = next((at for at in reversed(range(len(history))) if _said(history[at], Kind.USER_INPUT)), None)
    if at is None:
        return None
    first = at
    while first and _said(history[first - 1], Kind.REMEMBERED):
        first -= 1
    left = branched(state, first)
    if not (left.history and _said(left.history[-1], Kind.USER_INPUT)):
        left = left.to(Done(outcome=Said(text="")))  # nothing is unanswered, so there is nothing to continue
    return left, history[at].text


def _said(message: Message, kind: Kind) -> bool:
    return isinstance(message, User) and message.kind is kind
