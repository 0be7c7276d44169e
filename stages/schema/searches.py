"""What the patterns of a schema cost to search for: measured by the size of their programs, not timed.

Most patterns take time linear in the text. Those with look-around or back-references may begin anew at every character,
and go through what follows each time. The units are some five nanoseconds long.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from stages.schema.subschemas import within
from stages.schema.value import Json

if TYPE_CHECKING:
    from jsonschema_rs import FancyRegexOptions, RegexOptions

BACKTRACKING = 2_000
"""Maximum steps back from one character, for a pattern with look-around or back-references."""

_MOST_TEXT = 2_000
"""Maximum characters of a pattern."""

_MOST_TEXTS = 6_000
"""Maximum characters of all patterns of a schema."""

LARGEST = 1_000_000
"""Maximum bytes of a pattern's program."""

_SIZES = (500, 2_000, 8_000, 32_000, 128_000, 500_000, LARGEST)
"""The sizes in bytes that a pattern's program is tried in."""

_MOST_SIZES = 4_000_000
"""Maximum bytes of the programs that a schema's patterns are tried in."""


class Search(Struct, frozen=True):
    """What one pattern costs: the size of its program, and whether it looks around."""

    size: int
    around: bool

    def cost(self, length: int) -> int:
        """The units that a search in a text of this length takes at most."""
        if self.around:
            return length * (length * (1 + self.size // 150) + 4 * BACKTRACKING)
        return length * self.rate

    @property
    def rate(self) -> int:
        """The units for each character."""
        return 100 + self.size // 100


def searches(root: dict[str, Json]) -> dict[str, Search | None]:
    """What each pattern of the schema costs; None: too much. What is no regular expression is left to the validator."""
    found: dict[str, Search | None] = {}
    texts, sizes = _MOST_TEXTS, _MOST_SIZES
    for pattern in dict.fromkeys(_patterns(root)):
        texts -= len(pattern)
        if len(pattern) > _MOST_TEXT or texts < 0:
            found[pattern] = None
        elif _compiles(f"(?:x(?:{pattern})){{0}}", LARGEST):
            # Repeated no times it is read, but its program is empty.
            tried = [size for size in _SIZES if size <= sizes]
            found[pattern], spent = _search(pattern, tried)
            sizes -= spent
    return found


def _patterns(root: Json) -> Iterator[str]:
    for part in within(root):
        if isinstance(pattern := part.get("pattern"), str):
            yield pattern
        if isinstance(named := part.get("patternProperties"), dict):
            yield from named


def _search(pattern: str, sizes: list[int]) -> tuple[Search | None, int]:
    """What it costs, and the bytes of the programs that it was tried in."""
    around = not _compiles(f"(?:x(?:{pattern})){{0}}", LARGEST, around=False)
    for tried, size in enumerate(sizes, 1):
        if _compiles(pattern, size, around=around):
            return Search(size * (1 + pattern.count("(?")) if around else size, around), sum(sizes[:tried])
    return None, sum(sizes)


def _compiles(pattern: str, size: int, *, around: bool = True) -> bool:
    from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - it takes longer to import than most of forge

    try:
        validator_for({"pattern": pattern}, pattern_options=engine(around=around, size=size))
    except ValidationError:
        return False
    return True


def engine(*, around: bool, size: int = LARGEST) -> "RegexOptions | FancyRegexOptions":
    """The engine for patterns, `around` those with look-around or back-references too."""
    from jsonschema_rs import FancyRegexOptions, RegexOptions  # noqa: PLC0415 - it takes longer to import than most of forge

    if around:
        return FancyRegexOptions(backtrack_limit=BACKTRACKING, size_limit=size)
    return RegexOptions(size_limit=size)
