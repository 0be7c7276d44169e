"""Excerpts: the beginnings of results that a chat shows. Pure."""

from forge.cli.plain import readable
from forge.errors import quantity

_LINES, _LINE = 4, 160
"""Lines shown of a result, and characters of each."""


def excerpt(text: str) -> str:
    """The first lines of a tool's result, cut to size, and how many follow."""
    lines = text.strip().splitlines() or ["(nothing)"]
    shown = [_expanded(line) for line in lines[:_LINES]]
    more = len(lines) - _LINES
    return "\n".join((*shown, f"… {quantity(more, 'more line')}") if more > 0 else shown)


def _expanded(line: str) -> str:
    safe = readable(line[:_LINE].expandtabs(4))
    return safe if len(line) <= _LINE else f"{safe}… ({len(line) - _LINE} more)"


def unmarked(text: str) -> str:
    """What went wrong, without the word in brackets that tells a model of which kind it is."""
    marked = text.startswith("[") and text.partition("] ")[0][1:].isalpha()
    return text.partition("] ")[2] if marked else text
