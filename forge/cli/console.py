"""What is printed: plain in a pipe, coloured in a terminal."""

import codecs
import sys
from io import TextIOWrapper
from typing import NoReturn

import rich.console

# The console that commands print with.


class Console(rich.console.Console):
    """Rich's, but where the reader of the output is gone, `BrokenPipeError` reaches `forge.cli.dispatch`."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise it, and print nothing any more; rich itself would exit with 1."""
        self.quiet = True
        raise BrokenPipeError


# Text from models, tools and files made safe for a terminal, whatever its encoding.

_WIDTH = 400
"""Maximum characters shown of one text."""


def printable(text: str, width: int = _WIDTH) -> str:
    """The text on one line, shortened, without characters that could control a terminal."""
    flat = " ".join(text.split())
    safe = "".join(c if c.isprintable() else "�" for c in flat[:width])
    return safe if len(flat) <= width else f"{safe}… ({len(flat) - width} more)"


def readable(text: str) -> str:
    """The text with its lines, every character that could not be seen replaced."""
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
