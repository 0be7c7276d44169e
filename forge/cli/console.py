"""Output: plain in a pipe, coloured in a terminal; text without what could control either."""

import codecs
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import NoReturn

import msgspec
import rich.console
from msgspec import Struct
from rich.table import Table
from rich.text import Text

# The console for all commands.

LABEL_WIDTH = 9
"""Width of the column of labels."""

_NARROW = 50
"""Terminal width below which labels get no column of their own."""


class LabelledText(Struct, frozen=True):
    """A labelled text; both parts have a rich style. Only secondary text is dim."""

    label: str
    text: str
    style: str = ""
    label_style: str = "dim"

    def plain(self, column: int = LABEL_WIDTH) -> Iterator[str]:
        """Its lines without style: the label right-aligned in a column of that width, the text beside it."""
        for number, line in enumerate(self.text.splitlines() or [""]):
            yield f"{'' if number else self.label:>{column}}  {line}".rstrip()


class Console(rich.console.Console):
    """Rich's console, but a closed pipe raises `BrokenPipeError`, which `forge.cli.dispatch` handles."""

    def say(self, text: str | Text, style: str = "") -> None:
        """Print the text as it is, without markup; one line stays one line."""
        self.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)

    def show(self, row: LabelledText, column: int = LABEL_WIDTH) -> None:
        """Print label and text side by side, the label right-aligned in a column of that width.

        Only in a terminal, long lines are wrapped.
        """
        if not self.is_terminal:
            for line in row.plain(column):
                self.say(line)
            return
        label, text = Text(row.label, style=row.label_style), Text(row.text, style=row.style)
        if self.width < _NARROW:
            self.print(Text.assemble(label, "  ", text))
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(justify="right", width=column, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(label, text)
        self.print(grid)

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError and print nothing more; rich itself would exit with 1."""
        self.quiet = True
        raise BrokenPipeError


def print_json(value: object, *, indented: bool = False) -> None:
    """Print the value as JSON, by default on one line; a path is a text.

    What cannot be printed is escaped, so that it stays the same value and cannot control a terminal.
    """
    encoded = msgspec.json.encode(value, enc_hook=str)
    text = msgspec.json.format(encoded, indent=2 if indented else -1).decode()
    print("".join(c if c.isprintable() or c == "\n" else escaped(c) for c in text), flush=True)


# Text from models, tools and files, made safe for a terminal in any encoding.

LINE = 400
"""Maximum characters to show of a text."""


def printable(text: str, width: int = LINE) -> str:
    """The text on one line, shortened, without control characters."""
    flat = " ".join(text.split())
    left = len(flat) - width
    cut = f"… ({left} more)" if left > 0 else ""
    kept = flat if left <= len(cut) else flat[:width]  # what is no longer than its note is shown
    safe = "".join(c if c.isprintable() else "�" for c in kept)
    return safe + (cut if len(kept) < len(flat) else "")


def readable(text: str) -> str:
    """The text with its line breaks, and other unprintable characters replaced."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def escaped(character: str) -> str:
    """The character as a JSON escape."""
    pairs = character.encode("utf-16-be", errors="surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))


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
