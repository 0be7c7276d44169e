"""Lists of values: the schema of a grounded argument, limited to values that were seen.

It never leaves out a value that the guard accepts. Of a text any words may be the value, so a pattern allows each
sequence of them; after some words in a row the rest is free. Case and spaces are as they were seen.
"""

import re
from collections.abc import Iterator
from decimal import Decimal

from stages.grounding.matching import normalized
from stages.grounding.seen_values import words_in
from stages.schema.value import ANY_VALUE, Json
from stages.state import SourceValues

_IN_A_ROW = 6
"""Words of a text that a pattern spells out; longer values may end in anything."""

_REST = r'[^"\\\x00-\x1F]*'

_SURE = 10**15
"""Beyond it, a grammar may not have the very number."""

_UNLIMITED = ANY_VALUE | {"minLength", "maxLength"}
"""Keywords of a text of which each seen one may be the value; others say more than a list of them."""


def listed_values(kind: Json, seen: SourceValues, tried: frozenset[str] = frozenset()) -> Json:
    """The schema with only values that were seen; unchanged where they cannot be listed, or if none would fit.

    Without the `tried` ones (normalized), unless nothing else is left.
    """
    if not isinstance(kind, dict) or kind.keys() & {"enum", "const"}:
        return kind

    def within(part: Json) -> Json:
        return listed_values(part, seen, tried)

    match kind.get("type"), kind.get("anyOf"):
        case "string", None if kind.keys() <= _UNLIMITED:
            return _texts(seen, tried) or _texts(seen, frozenset()) or kind
        case "integer" | "number" as type_, None:
            return _numbers(seen, whole=type_ == "integer") or kind
        case [*types], None:
            return {"anyOf": [within({**kind, "type": one}) for one in types]}
        case None, [*branches]:
            return {**kind, "anyOf": [*map(within, branches)]}
        case "array", None if "items" in kind:
            return {**kind, "items": within(kind["items"])}
        case "object", None if isinstance(members := kind.get("properties"), dict):
            return {**kind, "properties": {name: within(part) for name, part in members.items()}}
        case _:
            return kind


def _numbers(seen: SourceValues, *, whole: bool) -> Json:
    numbers = [n for n in seen.numbers or () if not whole or n == n.to_integral_value()]
    if not numbers or any(abs(n) >= _SURE for n in numbers):
        return None
    return {"type": "integer" if whole else "number", "enum": [_as_json(n) for n in sorted(numbers)]}


def _as_json(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _texts(seen: SourceValues, tried: frozenset[str]) -> Json:
    if seen.texts is None or seen.numbers is None:
        return None
    spelt = [(text, words_in(text)) for text in seen.texts]
    short = (text for text, words in spelt if 0 < len(words) <= _IN_A_ROW and text.isprintable())
    whole = [*dict.fromkeys((*short, *(f"{number:f}" for number in seen.numbers)))]
    left: list[Json] = [text for text in whole if normalized(text) not in tried]
    longer = (words for text, words in spelt if len(words) > 1 or text not in whole)
    parts = [part for words in longer for part in _parts(words, tried, seen.echo)]
    kinds: list[Json] = [{"type": "string", "enum": left}] if left else []
    if parts:
        kinds.append({"type": "string", "pattern": f"^({'|'.join(dict.fromkeys(parts))})$"})
    return {"anyOf": kinds} if kinds else None


def _parts(words: list[re.Match[str]], tried: frozenset[str], echo: frozenset[str]) -> Iterator[str]:
    """A pattern for each word: it, and what follows it in the text; at least up to a word that is no echo."""
    telling = [re.match(r"\w", word[0]) is not None and normalized(word[0]) not in echo for word in words]
    for place, word in enumerate(words):
        if word[0] in _CLOSING or True not in telling[place:]:
            continue
        again = normalized(word[0]) in tried
        least = max(telling.index(True, place), place + again)
        if least < len(words):
            yield _sequence(words, place, least, _IN_A_ROW)


def _sequence(words: list[re.Match[str]], place: int, least: int, most: int) -> str:
    """The words from there on: those up to the one at `least`, and any number of those after it."""
    here = _spelt(words[place][0])
    if place + 1 == len(words):
        return here
    blank = " " if words[place].end() < words[place + 1].start() else ""
    rest = blank + _sequence(words, place + 1, least, most - 1) if most > 1 else _REST
    return here + (rest if place < least else f"({rest})?")


_CLOSING = frozenset(",.;:!?)]}'%")
"""Signs with which no value begins."""


def _spelt(word: str) -> str:
    """The word as a pattern that means the same in ECMA's regular expressions and in llama.cpp's grammars."""
    return "".join(
        sign if sign.isalnum() or sign == "_" or not sign.isascii() else rf"[\x{ord(sign):02X}]" for sign in word
    ).replace(r"[\x5C]", r"[\x5C]{1,2}")
