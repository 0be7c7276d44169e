"""The way through a schema along a value: which of its parts apply to which place in the value."""

from typing import Self

from msgspec import Struct

from stages.schema.judging import Judge
from stages.schema.value import Json, at_pointer, is_pointer

_LEVELS = 120
"""Maximum depth to which parts of a schema are followed, references included."""


Path = tuple[str | int, ...]
"""The names and numbers that lead to a place in a value."""


class Place(Struct, frozen=True):
    """A part of a schema and the place in a value that it applies to."""

    judge: Judge
    part: Json
    path: Path = ()
    level: int = 0

    @property
    def rules(self) -> dict[str, Json]:
        """The part's keywords."""
        return self.part if isinstance(self.part, dict) else {}

    def fits(self, value: Json) -> bool:
        """Whether the value fits the part; False where there is none."""
        return self.judge.fits(self.part, value)

    def conjuncts(self) -> list[Self]:
        """Further parts that apply to the same value: the target of `$ref`, and `allOf`."""
        target = self.rules.get("$ref")
        referred = [self._at(at_pointer(self.judge.schema.root, target))] if is_pointer(target) else []
        return referred + self._branches("allOf") if "allOf" in self.rules else referred

    def alternatives(self) -> list[list[Self]]:
        """The lists of parts of which one has to apply to the same value: `anyOf` and `oneOf`."""
        return [self._branches(keyword) for keyword in ("anyOf", "oneOf") if keyword in self.rules]

    def member(self, name: str) -> Self:
        """The part for that member of an object."""
        declared = self.rules.get("properties")
        if isinstance(declared, dict) and name in declared:
            return self._child(declared[name], name)
        return self._child(self.rules.get("additionalProperties"), name)

    def item(self, index: int) -> Self:
        """The part for that item of an array: from `prefixItems` (or draft 7's list of `items`), or for the rest."""
        items, first = self.rules.get("items"), self.rules.get("prefixItems")
        keyword, leading = ("items", items) if isinstance(items, list) else ("prefixItems", first)
        if isinstance(leading, list) and index < len(leading):
            return self._child(leading[index], index)
        return self._child(self.rules.get("additionalItems" if keyword == "items" else "items"), index)

    def _branches(self, keyword: str) -> list[Self]:
        branches = self.rules[keyword]
        return [self._at(branch) for branch in branches] if isinstance(branches, list) else []

    def _at(self, part: Json) -> Self:
        return type(self)(self.judge, part, self.path, self.level + 1)

    def _child(self, part: Json, step: str | int) -> Self:
        return type(self)(self.judge, part, (*self.path, step), self.level + 1)


class Fuel:
    """What one walk through a schema beside a value may still cost. It is used up by the walk that it was made for.

    Where a schema refers to itself in several alternatives, trying all of them would take exponential time. `size` is
    the length of the value's text.
    """

    def __init__(self, size: int) -> None:
        self._left = 1000 + 2 * size

    def lasts(self, at: Place) -> bool:
        """Whether to go on at this place, which costs a unit; no place is followed deeper than `LEVELS`."""
        if at.level > _LEVELS or not self._left:
            return False
        self._left -= 1
        return True
