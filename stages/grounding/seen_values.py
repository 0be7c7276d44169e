"""Values that the model is shown, collected message by message: what a constraint can list for a grounded argument."""

import re
from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from stages.grounding.matching import decimal_of, evidence, leaves, normalized, numbers_in, plainly_spelled
from stages.grounding.sources import Given, echoed, texts_given
from stages.message import History, Tool
from stages.state import SourceValues
from stages.tool import Grounded

MOST_WORDS = 160
"""Maximum words and signs of the texts in one list; a grammar's size and time grow with them."""

MOST_NUMBERS = 64
"""Maximum numbers in one list."""

_LONGEST_WORD = 40
"""Characters; texts of more than `MOST_WORDS` of that length are not looked through for words."""

_WORD = re.compile(
    r"(?:\w|(?<=\d)[-/](?=\w)|(?<=\w)[-/](?=\d)|(?<=\d)[.,'](?=\d))+|[^\w\s\x00-\x1f\x7f-\x9f\ud800-\udfff]"
)
"""What no seen value is a part of: a word, an id, a number, a date; any other sign is one by itself."""


def with_values(known: tuple[SourceValues, ...], view: History, start: int) -> tuple[SourceValues, ...]:
    """What is known of the messages before `start`, and the values of those from there on."""
    while 0 < start < len(view) and isinstance(view[start], Tool):
        start -= 1  # an answer is read with its call
    found = {(one.source, one.repeated): one for one in known}
    for given in texts_given(view[start:], recalled=True):
        for repeated, values in _values(given).items():
            before = found.get((given.tool, repeated), SourceValues(source=given.tool, repeated=repeated))
            found[given.tool, repeated] = _joined(before, values.texts, values.numbers)
    return tuple(found.values())


def values_for(bound: Grounded, known: Iterable[SourceValues]) -> SourceValues:
    """All values that the argument may have: of its sources or, without any, of every source."""
    useful = [one for one in known if (one.source in bound.sources if bound.sources else not one.repeated)]
    whole = SourceValues(source=bound.argument)
    for one in useful:
        whole = _joined(whole, one.texts, one.numbers)
    return whole


def all_numbers(known: Iterable[SourceValues]) -> tuple[Decimal, ...]:
    """Every number that was given; empty if there are more than `MOST_NUMBERS`."""
    return values_for(Grounded(argument=""), known).numbers or ()


def words_in(text: str) -> list[re.Match[str]]:
    """The words and signs of a text as it is plainly spelled."""
    return [*_WORD.finditer(plainly_spelled(text))]


class _Values(Struct):
    texts: list[str] = []
    numbers: list[Decimal] = []


def _values(given: Given) -> dict[bool, _Values]:
    """The values of a text; under True those that are in the call that it answers."""
    echo = echoed(given) if given.echo else evidence(())
    found = {False: _Values(), True: _Values()}
    for leaf in leaves(given.text):
        numbers = set[Decimal]()
        if isinstance(leaf, str):
            numbers.update(numbers_in(normalized(leaf)))
            found[echo.shows(leaf) and numbers <= echo.numbers].texts.append(leaf)
        elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
            numbers.add(decimal_of(leaf))
        for number in numbers:
            found[number in echo.numbers].numbers.append(number)
    return found


def _joined(known: SourceValues, texts: Iterable[str] | None, numbers: Iterable[Decimal] | None) -> SourceValues:
    return replace(known, texts=_more_texts(known.texts, texts), numbers=_more_numbers(known.numbers, numbers))


def _more_texts(known: tuple[str, ...] | None, more: Iterable[str] | None) -> tuple[str, ...] | None:
    """The texts, each once; None if they have too many words."""
    if known is None or more is None:
        return None
    texts = tuple(dict.fromkeys((*known, *more)))
    if sum(map(len, texts)) > MOST_WORDS * _LONGEST_WORD or sum(len(words_in(text)) for text in texts) > MOST_WORDS:
        return None
    return texts


def _more_numbers(known: tuple[Decimal, ...] | None, more: Iterable[Decimal] | None) -> tuple[Decimal, ...] | None:
    """The numbers, each once; None if there are too many."""
    if known is None or more is None:
        return None
    numbers = tuple(dict.fromkeys((*known, *more)))
    return numbers if len(numbers) <= MOST_NUMBERS else None
