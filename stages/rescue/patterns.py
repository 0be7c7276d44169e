"""Regular expressions with many alternatives, written so that few are tried at any place.

Python tries one alternative after the other. Here, a common beginning is tried only once.
"""

import re

from stages._later import LazyPattern

_PIECE = LazyPattern(
    r"\\u[0-9a-fA-F]{4}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:[:=!>]|<[=!]|[a-z-]+:))?|[)|]|(?:[*+?]|\{\d*+(?:,\d*+)?\})[+?]?|.",
    re.DOTALL,
)
_REPEATED = LazyPattern(r"(?:[*+?]|\{\d*+(?:,\d*+)?\})[+?]?")
_LITERAL = LazyPattern(r"\^|\\w\+|\\[^\w\s]|[^\\\[\](){}.*+?|^$]")

_Sequence = tuple[str, ...]
"""The elements of an expression without bars: characters, classes and groups, with their repetitions."""


def factored(expression: str) -> str:
    """An expression that matches at the same places, with alternatives that begin alike grouped.

    Where several alternatives match at one place, a different one may win.
    """
    return "|".join(map("".join, by_first_character(expression).items()))


def by_first_character(expression: str) -> dict[str, str]:
    """The alternatives of the expression by their first character: what may follow it.

    "" for those that have none. An expression that matches where this one does is any such character, then that.
    """
    rests: dict[str, list[_Sequence]] = {}
    for sequence in _opened(_sequences(expression)):
        literal = bool(sequence) and _LITERAL.compiled.fullmatch(sequence[0])
        first, rest = (sequence[0], sequence[1:]) if literal else ("", sequence)
        rests.setdefault(first, []).append(rest)
    return {first: _any_of(_opened(several)) for first, several in rests.items()}


def _sequences(expression: str) -> list[_Sequence]:
    """The alternatives at the outermost bars, each split into its elements."""
    found: list[list[str]] = [[]]
    depth = 0
    for piece in _PIECE.compiled.findall(expression):
        inside = depth > 0
        depth += piece.startswith("(") - (piece == ")")
        if piece == "|" and not inside:
            found.append([])
        elif inside or (found[-1] and _REPEATED.compiled.fullmatch(piece)):
            found[-1][-1] += piece
        else:
            found[-1].append(piece)
    return [*map(tuple, found)]


def _opened(sequences: list[_Sequence]) -> list[_Sequence]:
    """The same, with a group at the beginning expanded: `(?:ab|c)d` is `abd` or `cd`."""
    opened: list[_Sequence] = []
    for sequence in sequences:
        first, rest = sequence[:1], sequence[1:]
        group = first[0] if first and first[0].startswith("(?:") else ""
        if group.endswith((")", ")?")):
            inside = _sequences(group.removesuffix("?")[len("(?:") : -1])
            begun = [one + rest for one in inside]
            opened += _opened([*begun, rest] if group.endswith("?") else begun)
        else:
            opened.append(sequence)
    return opened


def _any_of(sequences: list[_Sequence]) -> str:
    """An expression for any of them, in which a common beginning occurs once."""
    rests: dict[str, list[_Sequence]] = {}
    for sequence in sequences:
        rests.setdefault(sequence[0] if sequence else "", []).append(sequence[1:])
    parts = [first + (_any_of(several) if first else "") for first, several in rests.items()]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
