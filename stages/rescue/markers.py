"""Where families may begin: one pattern finds the place in a text, a second tells which families it is for."""

import re
from collections.abc import Iterable
from itertools import compress

from msgspec import Struct

from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.patterns import factored


class Openers(Struct, frozen=True):
    """The openers of all families: `anywhere` finds a place, `which` tells, by its first character, whose it is."""

    anywhere: re.Pattern[str]
    which: dict[str, tuple[re.Pattern[str], tuple[Family, ...]]]

    def readings(self, text: str, start: int, floor: int, names: Names) -> tuple[list[tuple[str, Read]], int]:
        """What the families make of the text at `start`, in their order, up to one that knows that it is no call.

        Nothing counts that begins before `floor`. The number is how far any of them looked.
        """
        readings: list[tuple[str, Read]] = []
        looked = start
        for family in self.families(text, start):
            read = family.read(text, start, names)
            if read is None:
                continue
            looked = max(looked, read.end, read.looked)
            if read.start < floor or read.end == start:
                continue
            readings.append((family.name, read))
            if not read.claims and not read.damage:
                break
        return readings, looked

    def families(self, text: str, start: int) -> Iterable[Family]:
        """The families whose opener is at `start`."""
        whose, families = self.which[text[start]]
        if len(families) == 1:
            return families
        opened = whose.match(text, start)
        return compress(families, opened.groups()) if opened else ()


def openers(families: tuple[Family, ...]) -> Openers:
    """The openers of these families, compiled."""
    firsts = dict.fromkeys(first for family in families for first in family.first)
    return Openers(
        # Without families there is nowhere to begin: `(?!)` matches nothing.
        anywhere=re.compile(factored("|".join(family.opener for family in families)) or "(?!)"),
        which={first: _which(tuple(family for family in families if first in family.first)) for first in firsts},
    )


def _which(families: tuple[Family, ...]) -> tuple[re.Pattern[str], tuple[Family, ...]]:
    """A pattern that matches everywhere, with one group for each of the families: filled, if it may begin there."""
    return re.compile("".join(f"(?:(?=({family.opener}))|)" for family in families)), families
