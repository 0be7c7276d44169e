"""`forge completion`: a completion script for a shell."""

import argparse
from pathlib import Path

import shtab

from forge.backends.profile import names
from forge.backends.servers.models import KNOWN
from forge.cli.commands import parser

_FILES = {"workflow", "agent", "file"}
"""Arguments that are files, though their values may contain more: FILE.py:NAME."""


def run_completion(options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    print(script(options.shell))
    return 0


def script(shell: str) -> str:
    """The script, generated from the parser of the command line."""
    made = parser()
    for action in _all(made):
        if action.dest in _WORDS and not action.choices:
            action.choices = _WORDS[action.dest]
        if action.type is Path or action.dest in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    return str(shtab.complete(made, shell=shell))


_WORDS = {
    "backend": ("local", *names()),
    "profile": names(),
    "name": tuple(KNOWN),
    "model": tuple(KNOWN),
}
"""Suggestions for arguments that also accept other values."""


def _all(top: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments of a parser and of all parsers below it."""
    found: list[argparse.Action] = []
    for action in top._actions:  # noqa: SLF001 - argparse has no other way to them, and every completer uses it
        found.append(action)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            found += (below for child in action.choices.values() for below in _all(child))
    return found
