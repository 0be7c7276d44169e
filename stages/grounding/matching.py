"""Evidence: whether a value occurs in a text that the model was given, by itself and not as part of another.

Numbers are compared as numbers: 99.5, 99.50, 1,299.00, 1.299,00, #17, 19th and 12-minute are read; texts ignoring case,
spaces and forms of Unicode. Parts of an id, a date or a longer number do not count: 17 is not in A-17, nor in
2024-05-17, nor in 17.5.
Linear in the length of the text.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal

import msgspec
from msgspec import Struct

from stages.repair.decoding import decode
from stages.schema.value import MAX_DEPTH, Json

_LONGEST = 100
"""Maximum length of a text that may be a number."""


class Evidence(Struct, frozen=True, kw_only=True):
    """The content of texts: every number, and all of the words."""

    numbers: frozenset[Decimal]
    words: str

    def shows(self, value: Json) -> bool:
        """Whether the value occurs; of a list or an object, all values in it. True, false and null always do."""
        match value:
            case None | bool():
                return True
            case int() | float():
                return decimal_of(value) in self.numbers
            case str():
                return self._says(value)
            case list():
                return all(map(self.shows, value))
            case dict():
                return all(map(self.shows, value.values()))

    def marked(self) -> str:
        """The words, and a mark for each number: what `marks_of` is looked for in."""
        return "\n".join((self.words, *sorted(map(_mark, self.numbers))))

    def has_the_words_of(self, text: str) -> bool:
        """Whether all words of the text occur, in any order: those of `John Smith`."""
        return bool(self.with_all_words([normalized(text)]))

    def with_all_words(self, texts: Iterable[str]) -> frozenset[str]:
        """Those of the normalized texts that have words, all of which occur, in any order."""
        known = {*_WORD.findall(self.words)}
        return frozenset(text for text in texts if (words := {*_WORD.findall(text)}) and words <= known)

    def _says(self, value: str) -> bool:
        wanted = normalized(value)
        # A sign at its edge would hide what it is a part of: `A-` is one of A-17.
        if not wanted or _occurs(wanted.strip(_JOINING) or wanted, self.words):
            return True
        return any(number in self.numbers for number in _readings(wanted))


_WORD = re.compile(r"\w+")


def evidence(texts: Iterable[str]) -> Evidence:
    """The evidence of these texts; JSON is taken apart, so its numbers need not be searched in text."""
    numbers: set[Decimal] = set()
    words: list[str] = []
    for text in texts:
        for leaf in leaves(text):
            if isinstance(leaf, str):
                said = normalized(leaf)
                words.append(said)
                numbers.update(numbers_in(said))
            elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
                numbers.add(decimal_of(leaf))
    return Evidence(numbers=frozenset(numbers), words="\n".join(words))


def searchable(text: str, *, numbers: bool = True) -> str:
    """The words of a text, normalized, and a mark for each of its numbers: what `marks_of` is looked for in."""
    if not numbers:
        return "\n".join(normalized(leaf) for leaf in leaves(text) if isinstance(leaf, str))
    return evidence((text,)).marked()


def marks_of(values: Iterable[Json]) -> frozenset[str]:
    """Short texts of which one at least is in `searchable(text)` if that text shows one of these values.

    To look for them is many times faster than to read the text. A text that has one may still not show the value.
    """
    return frozenset(mark for value in values for mark in _marks(value))


def has_numbers(marks: Iterable[str]) -> bool:
    """Whether a number is among what they stand for: words alone are found without reading a text's numbers."""
    return any(mark.startswith("#") for mark in marks)


def _marks(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        said = normalized(value)
        yield said.strip(_JOINING) or said
        yield from map(_mark, _readings(said))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield _mark(decimal_of(value))
    else:
        yield ""  # any text may show it


def _mark(number: Decimal) -> str:
    return f"#{hash(number)};"  # equal numbers have equal hashes, however they are written


def number_counts(texts: Iterable[str]) -> Counter[Decimal]:
    """How often each number occurs in these texts."""
    return Counter(number for text in texts for leaf in leaves(text) for number in _numbers_of(leaf))


def percentage_counts(texts: Iterable[str]) -> Counter[Decimal]:
    """How often each number occurs in these texts as a percentage: `19 %`, `19%`, `19 percent`."""
    said = (normalized(leaf) for text in texts for leaf in leaves(text) if isinstance(leaf, str))
    return Counter(number for one in said for found in _PERCENTAGE.finditer(one) for number in _readings(found[1]))


def _numbers_of(leaf: Json) -> Iterator[Decimal]:
    if isinstance(leaf, str):
        yield from numbers_in(normalized(leaf))
    elif isinstance(leaf, int | float) and not isinstance(leaf, bool):
        yield decimal_of(leaf)


def normalized(text: str) -> str:
    """The text normalized for comparison: `Dune by Ada` for `"DUNE"  by Ada`."""
    return " ".join(plainly_spelled(text).casefold().split())


def plainly_spelled(text: str) -> str:
    """The text without forms of Unicode that mean the same, and without quotation marks, which only stand around it."""
    return unicodedata.normalize("NFKC", text).translate(_PLAIN)


_PLAIN = str.maketrans(
    {0x2018: "'", 0x2019: "'", 0x2010: "-", 0x2011: "-", 0x2013: "-", 0x2212: "-"}
    | dict.fromkeys((0x201C, 0x201D, 0x22), " ")
)
"""Typographic apostrophes, hyphens, dashes and minus signs as on a keyboard; a blank for quotation marks."""


def leaves(text: str) -> Iterator[Json]:
    """All values in a JSON text, nested ones too; for any other text, the text itself."""
    return (value for _, value in named_values(text))


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def named_values(text: str) -> Iterator[tuple[str, Json]]:
    """All values in a JSON text, each with the name of its member; empty for none."""
    try:
        value = decode(_any, text)
    except msgspec.DecodeError:
        value = text
    return values_within(value)


def values_within(value: Json) -> Iterator[tuple[str, Json]]:
    """All values in a JSON value, each with the name of its member."""
    stack: list[tuple[str, Json, int]] = [("", value, 0)]
    while stack:
        name, value, depth = stack.pop()
        if isinstance(value, dict | list) and depth < MAX_DEPTH:
            inner = value.items() if isinstance(value, dict) else ((name, item) for item in value)
            stack.extend((key, item, depth + 1) for key, item in inner)
        else:
            yield name, value


def _occurs(wanted: str, words: str) -> bool:
    """Whether it occurs with nothing around it that would make it part of something else."""
    start = words.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        digits = any(character.isdigit() for character in wanted)
        before, after = words[max(0, start - 2) : start][::-1], words[end : end + 2]
        if not (_goes_on(wanted[0], before, digits=digits) or _goes_on(wanted[-1], after, digits=digits)):
            return True
        # Continue after it: a value that overlaps itself would be searched once per character.
        start = words.find(wanted, end)
    return False


def _goes_on(edge: str, beside: str, *, digits: bool) -> bool:
    """Whether a value with that edge continues in what is beside it; the nearest character comes first."""
    if not beside or not _in_word(edge):
        return False
    if _in_word(beside[0]):
        return True
    joined = len(beside) > 1 and beside[0] in _JOINING and _in_word(beside[1])
    # A hyphen joins words that stand for themselves (Lisbon-based), and the parts of an id or of a number.
    return joined and (beside[1].isdigit() if beside[0] in ".,'" else digits or beside[1].isdigit())


_JOINING = "-.,/'"
"""Signs that may join the parts of a value."""


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_CHUNK = re.compile(r"[^\s\"()\[\]{}<>:;=|]+")
_NUMBER = re.compile(r"([-+]?)(?:[^\W\d_]{0,2}[$€£¥])?(\d[\d.,'_]*?)(?:[$€£¥%‰°]|[^\W\d_]{1,3})?")
_PERCENTAGE = re.compile(r"(?<![\d.,])(\d[\d.,'_]{0,40}) ?(?:%|per ?cent\b)")
_CODE = re.compile(r"0\d\d")
_DECIMAL = re.compile(r"\d{1,40}(?:[.,]\d{1,40})?")
_GROUPED = re.compile(r"\d{1,3}(?:([.,'_])\d{3})(?:\1\d{3}){0,10}(?:[.,]\d{1,40})?")


def numbers_in(text: str) -> Iterator[Decimal]:
    """Every number in a normalized text, in each way it can be read, as often as it is there; not in ids and dates."""
    for found in _CHUNK.finditer(text):
        chunk = found[0].strip(".,!?*`'/#~+±≈≤≥").rstrip("-,.")
        if len(chunk) <= _LONGEST:
            yield from _readings(chunk) or _listed(chunk) or _counted(chunk)


def _listed(chunk: str) -> list[Decimal]:
    """The numbers of a list without spaces, and the two of a range or a fraction."""
    for mark in ",/-":
        parts = [_readings(part) for part in chunk.split(mark)]
        if all(parts) and (len(parts) == 2 or mark == ","):
            return [number for part in parts for number in part]
    return []


_SHORTEST_NOUN = 3
"""Letters; what is joined to a number with fewer is a part of an id (17-A)."""


def _counted(chunk: str) -> set[Decimal]:
    """The number that words are joined to: of `12-minute`, `5-year-old`, `19th-century`."""
    number, *words = chunk.split("-")
    return _readings(number) if all(len(word) >= _SHORTEST_NOUN and word.isalpha() for word in words) else set()


def _readings(chunk: str) -> set[Decimal]:
    """The numbers that a word can mean: 1,234 may be one thousand or one; empty for any other word.

    Empty for 0171 too, as for every code or telephone number that begins with a zero: 171 is another one. 05 is 5.
    """
    shape = _NUMBER.fullmatch(chunk)
    if not shape or _CODE.match(shape[2]):
        return set()
    sign, digits = "-" if shape[1] == "-" else "", shape[2]
    found = {digits.replace(",", ".")} if _DECIMAL.fullmatch(digits) else set()
    if grouped := _GROUPED.fullmatch(digits):
        found.add(digits.replace(grouped[1], "").replace(",", "."))
    return {Decimal(sign + text) for text in found}


def decimal_of(number: float) -> Decimal:
    """The number as it is written in JSON."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))
