"""Values that the model is shown, collected message by message: what a constraint can list for a grounded argument."""

import re
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

from msgspec.structs import replace

from stages.grounding.identifiers import Ids, is_own, shown_ids
from stages.grounding.matching import (
    decimal_of,
    evidence,
    leaves,
    normalized,
    numbers_in,
    plainly_spelled,
)
from stages.grounding.sources import Given, echoed, ids_given_by, texts_given, with_their_calls
from stages.message import History
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
    found = {(one.source, one.repeated): one for one in known}
    for given in texts_given(view[with_their_calls(view, start) :], recalled=True):
        for repeated, values in _values(given).items():
            before = found.get((given.tool, repeated), SourceValues(source=given.tool, repeated=repeated))
            found[given.tool, repeated] = _joined(before, values)
    return tuple(found.values())


def values_for(bound: Grounded, known: Iterable[SourceValues]) -> SourceValues:
    """All values that the argument may have: of its sources or, without any, of every source.

    Once its own ids are among them, only what may be an id (`stages.grounding.identifiers`).
    """
    useful = [one for one in known if (one.source in bound.sources if bound.sources else not one.repeated)]
    whole = SourceValues(source=bound.argument)
    for one in useful:
        whole = _joined(whole, replace(one, ids=()))
    if bound.sources:
        whole = replace(whole, echo=frozenset())  # a source may repeat what another text has given
    ids = shown_ids(value for one in useful for name, value in one.ids if is_own(bound, name, one.source))
    return _only_ids(whole, ids) if ids else whole


def _only_ids(seen: SourceValues, ids: Ids) -> SourceValues:
    if seen.texts is None or seen.numbers is None:
        return seen
    parts = (part for text in seen.texts for part in ids.parts_of(text))
    texts = dict.fromkeys(part for part in parts if not _words_of([part]) <= seen.echo)
    return replace(seen, texts=tuple(texts), numbers=seen.numbers if ids.numeric else ())


def all_numbers(known: Iterable[SourceValues]) -> tuple[Decimal, ...]:
    """Every number that was given; empty if there are more than `MOST_NUMBERS`."""
    return values_for(Grounded(argument=""), known).numbers or ()


def words_in(text: str) -> list[re.Match[str]]:
    """The words and signs of a text as it is plainly spelled."""
    return [*_WORD.finditer(plainly_spelled(text))]


def _values(given: Given) -> dict[bool, SourceValues]:
    """The values of a text; under True those that are in the call that it answers."""
    echo = echoed(given) if given.echo else evidence(())
    texts, numbers = defaultdict[bool, list[str]](list), defaultdict[bool, list[Decimal]](list)
    for leaf in leaves(given.text):
        among = set[Decimal]()
        if isinstance(leaf, str):
            among.update(numbers_in(normalized(leaf)))
            repeats = echo.shows(leaf) or echo.has_the_words_of(leaf)
            texts[repeats and among <= echo.numbers].append(leaf)
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            among.add(decimal_of(leaf))
        for number in among:
            numbers[number in echo.numbers].append(number)
    repeating = echo.with_all_words(_words_of(texts[False])) if echo.words else frozenset()
    return {
        repeated: SourceValues(
            source=given.tool,
            repeated=repeated,
            texts=tuple(texts[repeated]),
            numbers=tuple(numbers[repeated]),
            ids=() if repeated or not given.tool else tuple(ids_given_by(given)),
            echo=frozenset() if repeated else repeating,
        )
        for repeated in (False, True)
    }


def _joined(known: SourceValues, more: SourceValues) -> SourceValues:
    texts, numbers = _more_texts(known.texts, more.texts), _more_numbers(known.numbers, more.numbers)
    if texts is None or numbers is None:
        # Where not all values can be listed, which of them are ids or repeated makes no difference.
        return replace(known, texts=texts, numbers=numbers, ids=(), echo=frozenset())
    ids = tuple(dict.fromkeys((*known.ids, *more.ids)))
    echo = known.echo | more.echo
    echo = echo - _free_words(known) - _free_words(more) if echo else echo
    return replace(known, texts=texts, numbers=numbers, ids=ids, echo=echo)


def _free_words(seen: SourceValues) -> frozenset[str]:
    """The words that stand in a text and are no echo there."""
    return _words_of(seen.texts or ()) - seen.echo


def _words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(normalized(word[0]) for text in texts for word in words_in(text))


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
