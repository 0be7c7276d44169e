"""Output: plain in a pipe, coloured in a terminal."""

import codecs
import sys
from io import TextIOWrapper
from typing import NoReturn

import rich.console

# The console for all commands.


class Console(rich.console.Console):
    """Rich's console, but a closed pipe raises `BrokenPipeError`, which `forge.cli.dispatch` handles."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError and print nothing more; rich itself would exit with 1."""
        self.quiet = True
        raise BrokenPipeError


# Text from models, tools and files, made safe for a terminal in any encoding.

_WIDTH = 400
"""Maximum characters to show of a text."""


def printable(text: str, width: int = _WIDTH) -> str:
    """The text on one line, shortened, without control characters."""
    flat = " ".join(text.split())
    safe = "".join(c if c.isprintable() else "�" for c in flat[:width])
    return safe if len(flat) <= width else f"{safe}… ({len(flat) - width} more)"


def readable(text: str) -> str:
    """The text with its line breaks, and other unprintable characters replaced."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


_SPELT = {"…": "...", "→": "->", "·": "-", "—": "-", "“": '"', "”": '"', "\u2019": "'"}
"""Replacements for forge's own characters if the encoding lacks them; any other becomes `?`."""


def _spelt(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SPELT.get(c, "?") for c in error.object[error.start : error.end]), error.end


def bear_any_text() -> None:
    """Make standard output and standard error accept any text, whatever their encoding."""
    codecs.register_error("spelt", _spelt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="spelt")
