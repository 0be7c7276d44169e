"""Regular expressions with many alternatives, grouped by first character, so that few are tried at any place."""

import re

_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]|[^\\\[()|]+", re.DOTALL)
_FIRST = re.compile(r"\^|\\w\+(?!\+)|(?:\\[^\w\s]|[^\\\[\](){}.*+?|^$])(?![*+?{])")


def alternatives(expression: str) -> list[str]:
    """The regular expression split at its outermost bars."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(expression):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def factored(expression: str) -> str:
    """An expression that matches at the same places, with alternatives of the same first character grouped.

    Where several alternatives match at one place, a different one may win.
    """
    return "|".join(map("".join, by_first_character(expression).items()))


def by_first_character(expression: str) -> dict[str, str]:
    """The alternatives of the expression by the character that they begin with: what may come after it.

    "" for those that have none. An expression that matches where this one does is any such character, then that.
    """
    return {first: _any_of(rests) for first, rests in _by_first(alternatives(expression)).items()}


def _by_first(parts: list[str]) -> dict[str, list[str]]:
    """What is left of the alternatives, by the character that they begin with; "" for those that have none."""
    rests: dict[str, list[str]] = {}
    for part in parts:
        if part.startswith("(?:") and (group := _grouped(part)):
            for first, rest in group.items():
                rests.setdefault(first, []).append(rest)
            continue
        begun = _FIRST.match(part)
        rests.setdefault(begun[0] if begun else "", []).append(part[begun.end() :] if begun else part)
    return rests


def _grouped(part: str) -> dict[str, str]:
    """The same of one that begins with a group: `(?:ab|ac|d)e` begins with `a` or with `d`. Empty if it may repeat."""
    inside, rest = _first_group(part)
    if rest.startswith(("*", "+", "{")):
        return {}
    begun = {first: _any_of(rests) + rest.removeprefix("?") for first, rests in _by_first(alternatives(inside)).items()}
    if rest.startswith("?"):
        for first, rests in _by_first([rest[1:]]).items():
            begun[first] = _any_of([begun[first], *rests] if first in begun else rests)
    return begun


def _any_of(rests: list[str]) -> str:
    return rests[0] if len(rests) == 1 and len(alternatives(rests[0])) == 1 else f"(?:{'|'.join(rests)})"


def _first_group(part: str) -> tuple[str, str]:
    """What is in the group that the expression begins with, and what comes after it."""
    depth = end = 0
    for piece in _PIECE.findall(part):
        depth += (piece == "(") - (piece == ")")
        end += len(piece)
        if depth == 0:
            break
    return part[len("(?:") : end - 1], part[end:]
