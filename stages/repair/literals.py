"""One number, boolean or null of damaged JSON, as valid JSON."""

import re

from msgspec import Struct

_WORD = re.compile(r"[+-]?[\w.][\w.+-]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?", re.ASCII)
_LOOSE_NUMBER = re.compile(r"([+-]?)(?:0(?=\d))*+(0|[1-9]\d*+|(?=\.\d))(?:\.(\d*+))?", re.ASCII)
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}


class _Literal(Struct, frozen=True):
    """A literal as JSON, where it ended, and its repairs."""

    json: str
    end: int
    repairs: tuple[str, ...] = ()


def literal(text: str, start: int) -> _Literal | None:
    """The literal that begins at `start`; None for any other word, and for a number that may be cut off."""
    word = _WORD.match(text, start)
    if word is None:
        return None
    if json := _WORDS.get(word[0]):
        return _Literal(json, word.end(), () if json == word[0] else ("python_literals",))
    if word.end() == len(text):
        # Perhaps the first digits of a longer number.
        return None
    if _NUMBER.fullmatch(word[0]):
        return _Literal(word[0], word.end())
    loose = _LOOSE_NUMBER.fullmatch(word[0].replace("_", ""))
    if loose is None:
        return None
    sign, fraction = loose[1].replace("+", ""), "" if loose[3] is None else f".{loose[3] or 0}"
    return _Literal(f"{sign}{loose[2] or 0}{fraction}", word.end(), ("loose_number",))
