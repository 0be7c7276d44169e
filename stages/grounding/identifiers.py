"""Identifiers: once results have shown the ids that an argument wants, nothing that is unlike an id can be one.

It holds for arguments that are called ids (`room_id`, `roomIds`), and only if every id that was shown looks like one:
without a blank, and with a digit, or a sign such as `-` between letters. After `R-7`, the words `station`, `12` and
`12 minutes` are no ids, whoever said them; `K9`, `old/17-b` and `new-york` may be. After `4711`, `12` may be one too.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from stages.grounding.matching import normalized, numbers_in, plainly_spelled
from stages.schema.value import Json
from stages.tool import Grounded

_NAME_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_JOINED = re.compile(r"\w[-_./:#@]\w")
_AROUND = ",.;:!?()[]{}'"
"""Signs that stand around a word."""


class Ids(Struct, frozen=True, kw_only=True):
    """The ids that were shown: normalized, and what they look like. `numeric`: some may be read as numbers."""

    values: frozenset[str]
    looks: frozenset[str]
    numeric: bool

    def may_have(self, value: str) -> bool:
        """Whether the value may be an id of theirs."""
        said = normalized(value)
        return said in self.values or like_an_id(value) or (" " not in said and look(said) in self.looks)

    def parts_of(self, text: str) -> Iterator[str]:
        """The parts of a text that have all values in it that may be ids; the text itself if it is one."""
        if self.may_have(text):
            yield text
            return
        for word in plainly_spelled(text).split():
            part = word.strip(_AROUND)
            if _mixed(part) or (self.numeric and any(map(str.isdigit, part))):
                yield part


def shown_ids(values: Iterable[Json]) -> Ids | None:
    """The ids among values that were shown under the name of one; None unless there are some, and all look like ids."""
    said = {normalized(f"{one}") for one in values if isinstance(one, str | int) and not isinstance(one, bool)} - {""}
    if not said or not all(" " not in one and (_mixed(one) or any(map(str.isdigit, one))) for one in said):
        return None
    return Ids(values=frozenset(said), looks=frozenset(map(look, said)), numeric=any(map(_a_number, said)))


def look(value: str) -> str:
    """The pattern of a value, each run of letters and of digits as one: what ids of one kind have in common."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", value))


def like_an_id(value: str) -> bool:
    """Whether it looks like an id beside any other: letters with digits or signs, no blank, and no number (`12kg`)."""
    said = normalized(value)
    return " " not in said and _mixed(said) and not _a_number(said)


def _mixed(part: str) -> bool:
    return any(map(str.isalpha, part)) and (any(map(str.isdigit, part)) or _JOINED.search(part) is not None)


def _a_number(said: str) -> bool:
    return next(numbers_in(said), None) is not None


def is_id(name: str) -> bool:
    """Whether an argument, or a member of a result, is called an id or a list of them."""
    return name_words(name)[-1:] in (["id"], ["ids"])


def is_own(bound: Grounded, name: str, tool: str) -> bool:
    """Whether what the tool gives under that name is what the argument is called.

    For `room_id` that is also the `id` that `list_rooms` gives, and what it lists without a name. A mere `id` is
    anybody's, unless a source is named.
    """
    if not is_id(bound.argument) or (name and not is_id(name)):
        return name == bound.argument
    wanted, given = name_words(bound.argument)[:-1], name_words(name)[:-1]
    if not wanted:
        return not given and tool in bound.sources
    said = name_words(tool) if name else name_words(tool)[-1:]  # list_room_tags lists no rooms
    return wanted == given or (not given and not _forms(wanted[-1]).isdisjoint(said))


def name_words(name: str) -> list[str]:
    """The words of a name, in small letters: of `orderId` and of `order_id`, order and id."""
    return [word.lower() for word in _NAME_PART.findall(name)]


def _forms(word: str) -> frozenset[str]:
    return frozenset((word, f"{word}s", f"{word}es", f"{word.removesuffix('y')}ies"))
