"""Where families may begin: one pattern finds the places in a text, each family's own tells whether it is for it."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct

from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.patterns import by_first_character


class Openers(Struct, frozen=True, kw_only=True):
    """The openers of all families: `untagged` finds a place, `which` has the families by its first character.

    `tagged`: a family reads tags that bear a tool's name, which `untagged` does not find. `words` are those of all
    families; None if one of them may read something in any text.
    """

    families: tuple[Family, ...]
    starts: Mapping[str, str]
    untagged: re.Pattern[str]
    tagged: bool
    words: frozenset[str] | None
    which: Mapping[str, tuple[tuple[re.Pattern[str], Family], ...]]

    @property
    def anywhere(self) -> re.Pattern[str]:
        """A pattern for any place, tags that may bear a tool's name among them. Compiled when it is first needed."""
        return re.compile(f"{self.untagged.pattern}|{_OWN_TAG.pattern}") if self.tagged else self.untagged

    def with_family(self, family: Family, place: int) -> "Openers":
        """The same with one family more, at that place among them; quicker than to compile all of them anew."""
        families = (*self.families[:place], family, *self.families[place:])
        more = {} if family.own_tag or family.whole else by_first_character(family.opener)
        both = {first: f"(?:{self.starts[first]}|{more[first]})" for first in more if first in self.starts}
        return _compiled(families, {**self.starts, **more, **both})

    def passes_over(self, text: str) -> bool:
        """Whether no family can read anything in the text, which names no known tool."""
        if self.words is None:
            return False
        lower = text.lower()
        return not any(word in lower for word in self.words)

    def places(self, text: str, begin: int, names: Names) -> Callable[[int], tuple[int, str]]:
        """A function from a position to the next place where a family may begin, -1 for none, and its key in `which`.

        Positions must grow, from `begin` on.
        """
        search = self.untagged.search
        found = search(text, begin)
        tagged = self.tagged and "<" in text and bool(names.known)

        def place(position: int) -> tuple[int, str]:
            nonlocal found
            if found and found.start() < position:
                found = search(text, position)
            start = found.start() if found else len(text)
            if tagged and position < start:
                for tag in _OWN_TAG.finditer(text, position, start + _LONGEST_TAG):
                    if tag.start() >= start:
                        break
                    if tag[1] in names.known:
                        return tag.start(), _OWN
            return (start, text[start]) if found else (-1, "")

        return place

    def readings(
        self, text: str, place: tuple[int, str], floor: int, names: Names
    ) -> tuple[list[tuple[str, Read]], int]:
        """What the families read there, in their order, up to one that is sure: a call as it should be, or none.

        Readings that begin before `floor` are ignored. The number is how far any family looked.
        """
        readings: list[tuple[str, Read]] = []
        looked = start = place[0]
        for opener, family in self.which[place[1]]:
            read = family.read(text, start, names) if opener.match(text, start) else None
            if read is None:
                continue
            looked = max(looked, read.end, read.looked)
            if read.start < floor or read.end == start:
                continue
            readings.append((family.name, read))
            if read.damage:
                continue
            for claim in read.claims:
                if claim.cost or claim.name not in names.known:
                    break
            else:
                # There is no better reading.
                break
        return readings, looked


def openers(families: tuple[Family, ...]) -> Openers:
    """The openers of these families, compiled."""
    sought = "|".join(family.opener for family in families if not (family.own_tag or family.whole))
    starts = by_first_character(sought) if sought else {}
    return _compiled(families, starts)


Grammars = Callable[[], Openers]
"""The openers, compiled when the first text is searched: that takes long, and most replies need no search."""


def grammars(families: tuple[Family, ...] | Grammars) -> Grammars:
    """The openers of these families, compiled already unless they are to be compiled later."""
    if not isinstance(families, tuple):
        return families
    compiled = openers(families)
    return lambda: compiled


_OWN = "own tag"
"""The key of the families that read a tag with a tool's name, where no other family may begin."""
_OWN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,120})(?=[\s/><])")
"""A tag that may bear a tool's name."""
_LONGEST_TAG = 123


def _compiled(families: tuple[Family, ...], starts: dict[str, str]) -> Openers:
    which: dict[str, list[tuple[re.Pattern[str], Family]]] = {}
    for family in families:
        begins = () if family.whole else (*family.first, *((_OWN,) if family.own_tag else ()))
        for first in begins:
            which.setdefault(first, []).append((re.compile(family.opener), family))
    words = [family.words for family in families]
    return Openers(
        families=families,
        starts=MappingProxyType(starts),
        # Without families there is nowhere to begin: `(?!)` matches nothing.
        untagged=re.compile("|".join(map("".join, starts.items())) or "(?!)"),
        tagged=any(family.own_tag for family in families),
        words=None if None in words else frozenset().union(*filter(None, words)),
        which=MappingProxyType({first: tuple(several) for first, several in which.items()}),
    )
