"""Slash commands as values: what a typed line asks for. Pure."""

import re

from msgspec import Struct

from forge.workflow.suggestions import did_you_mean


class Spoken(Struct, frozen=True):
    """Words for the agent."""

    text: str


class SlashCommand(Struct, frozen=True):
    """A command of the table, by its name, with what was written after it."""

    name: str
    argument: str = ""


class Mistyped(Struct, frozen=True):
    """A line that begins as a command does and is none: what is wrong, as a sentence."""

    problem: str


TypedLine = Spoken | SlashCommand | Mistyped


class CommandHelp(Struct, frozen=True):
    """What a command is called with, and what it does. An argument in brackets may be left out."""

    argument: str
    does: str


HELP = {
    "help": CommandHelp("", "these commands and keys"),
    "tools": CommandHelp("", "the agent's tools, and which of them ask first"),
    "context": CommandHelp("", "what the next prompt takes of the context"),
    "model": CommandHelp("[NAME]", "the model, or go on with another one"),
    "thinking": CommandHelp("", "what the model thought last, unfolded"),
    "save": CommandHelp("NAME", "keep a copy of the conversation as it is now"),
    "load": CommandHelp("[NAME]", "go on with another conversation; without a name: list them"),
    "continue": CommandHelp("", "go on with the message that was not answered to its end"),
    "undo": CommandHelp("", "take your last message back, with what came of it in the conversation"),
    "remember": CommandHelp("FACT", "a fact that is known in all conversations of this folder"),
    "facts": CommandHelp("", "what is remembered, with its numbers"),
    "forget": CommandHelp("NUMBER", "no longer remember that fact"),
    "exit": CommandHelp("", "end; the conversation is saved"),
}
"""The commands, in the order in which they are listed."""

_COMMAND = re.compile(r"/([A-Za-z]+)(?:\s+(.*))?", re.DOTALL)


def typed_line(line: str) -> TypedLine:
    """What the line asks for. A space before the slash makes words of it, and so does a path."""
    found = _COMMAND.fullmatch(line.rstrip())
    if found is None:
        return Spoken(line.strip())
    name, argument = found[1].lower(), (found[2] or "").strip()
    if name not in HELP:
        meant = did_you_mean(name, HELP)
        return Mistyped(
            f"there is no command /{name}; /help lists them.{meant} A space before the / makes it a message."
        )
    takes = HELP[name].argument
    if argument and not takes:
        return Mistyped(f"/{name} takes no argument")
    if not argument and takes and not takes.startswith("["):
        return Mistyped(f"write it as /{name} {takes}")
    return SlashCommand(name, argument)
