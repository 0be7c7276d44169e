"""Where families may begin: one pattern finds the place in a text, a second tells which families it is for."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import compress
from types import MappingProxyType

from msgspec import Struct

from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.patterns import by_first_character


class Openers(Struct, frozen=True, kw_only=True):
    """The openers of all families: `anywhere` finds a place, `which` the families for its first character.

    `untagged` finds the same but for tags that may bear a tool's name (`OWN_TAG`); None if no family reads these.
    """

    families: tuple[Family, ...]
    starts: Mapping[str, str]
    anywhere: re.Pattern[str]
    untagged: re.Pattern[str] | None
    which: Mapping[str, tuple[re.Pattern[str], tuple[Family, ...]]]

    def with_family(self, family: Family, place: int) -> "Openers":
        """The same with one family more, at that place among them; quicker than to compile all of them anew."""
        families = (*self.families[:place], family, *self.families[place:])
        more = {} if family.own_tag else by_first_character(family.opener)
        both = {first: f"(?:{self.starts[first]}|{more[first]})" for first in more if first in self.starts}
        which = {**self.which, **{first: _which(families, first) for first in family.first}}
        return _compiled(families, {**self.starts, **more, **both}, which)

    def places(self, text: str, names: Names) -> Callable[[int], int]:
        """A function from a position to the next place where a family may begin, -1 for none. Positions must grow."""
        tagged = _OWN_TAG.finditer(text) if self.untagged and "<" in text else ()
        tags = [tag.start() for tag in tagged if tag[1] in names.known]
        tags.reverse()
        search = (self.untagged or self.anywhere).search
        # Reasoning that came first is blank.
        found = search(text, len(text) - len(text.lstrip()))

        def place(position: int) -> int:
            nonlocal found
            if found and found.start() < position:
                found = search(text, position)
            while tags and tags[-1] < position:
                tags.pop()
            start = found.start() if found else -1
            return tags[-1] if tags and not 0 <= start < tags[-1] else start

        return place

    def readings(self, text: str, start: int, floor: int, names: Names) -> tuple[list[tuple[str, Read]], int]:
        """What the families read at `start`, in their order, up to one that is sure: a call as it should be, or none.

        Readings that begin before `floor` are ignored. The number is how far any family looked.
        """
        readings: list[tuple[str, Read]] = []
        looked = start
        for family in self.opened(text, start):
            read = family.read(text, start, names)
            if read is None:
                continue
            looked = max(looked, read.end, read.looked)
            if read.start < floor or read.end == start:
                continue
            readings.append((family.name, read))
            if not read.damage and all(claim.name in names.known and not claim.cost for claim in read.claims):
                # There is no better reading.
                break
        return readings, looked

    def opened(self, text: str, start: int) -> Iterable[Family]:
        """The families whose opener is at `start`."""
        whose, families = self.which[text[start]]
        if len(families) == 1:
            return families
        opened = whose.match(text, start)
        return compress(families, opened.groups()) if opened else ()


def openers(families: tuple[Family, ...]) -> Openers:
    """The openers of these families, compiled."""
    firsts = dict.fromkeys(first for family in families for first in family.first)
    sought = "|".join(family.opener for family in families if not family.own_tag)
    starts = by_first_character(sought) if sought else {}
    return _compiled(families, starts, {first: _which(families, first) for first in firsts})


_OWN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,120})(?=[\s/>])")
"""A tag that may bear a tool's name."""


def _compiled(
    families: tuple[Family, ...],
    starts: dict[str, str],
    which: dict[str, tuple[re.Pattern[str], tuple[Family, ...]]],
) -> Openers:
    # Without families there is nowhere to begin: `(?!)` matches nothing.
    sought = [*map("".join, starts.items())]
    found = re.compile("|".join(sought) or "(?!)")
    tagged = any(family.own_tag for family in families)
    return Openers(
        families=families,
        starts=MappingProxyType(starts),
        anywhere=re.compile("|".join((*sought, _OWN_TAG.pattern))) if tagged else found,
        untagged=found if tagged else None,
        which=MappingProxyType(which),
    )


def _which(families: tuple[Family, ...], first: str) -> tuple[re.Pattern[str], tuple[Family, ...]]:
    """A pattern that matches everywhere, with one group for each family of that first character.

    A group is filled where its family may begin.
    """
    several = tuple(family for family in families if first in family.first)
    return re.compile("".join(f"(?:(?=({family.opener}))|)" for family in several)), several
