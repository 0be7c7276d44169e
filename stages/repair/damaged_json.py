"""Turns damaged JSON into valid JSON, with a name and a cost for every repair.

Repairs with only one possible meaning cost nothing; the others cost more the more they guess. A value that was cut off
in the middle is never completed, and a value that cannot be read is never left out.
"""

from msgspec import Struct

_COST = {
    "missing_closer": 1,
    "other_bracket": 1,
    "surplus_bracket": 1,
    "lone_surrogate": 1,
    "bare_string": 1,
    "markdown_escape": 1,
    "parted_strings": 1,
    "other_quotes": 1,
    "mixed_backslash": 2,
    "inner_quotes": 3,
    "missing_quote": 3,
}
"""The cost of each repair; the others have only one meaning and cost nothing."""


class FoundJson(Struct, frozen=True, kw_only=True):
    """A JSON value found in a text: valid JSON, and where it ended. See FoundCall for repairs and cost.

    `left_open`: how many of its arrays and objects the end of the text closed.
    """

    text: str
    end: int
    repairs: tuple[str, ...] = ()
    cost: int = 0
    left_open: int = 0


class BrokenJson(Struct, frozen=True):
    """No value: `end` is where reading stopped, `cut` whether the text ended inside the value."""

    end: int
    cut: bool


def repair_json(text: str, start: int, *, opened: bool = False, called: bool = False) -> FoundJson | BrokenJson:
    """The object or array (or, inside pythonic calls, any value) that begins at `start`. Linear in its length.

    `opened`: an object without its opening brace, which begins with its first key. `called`: the arguments of a call in
    Python, which follow a parenthesis and are read as an object.
    """
    # Its patterns take long to compile, and most JSON is sound.
    from stages.repair.loose_json import BrokenError, Reader  # noqa: PLC0415

    reader = Reader(text, start)
    try:
        reader.run(opened=opened, called=called)
    except BrokenError as broken:
        return BrokenJson(end=broken.position, cut=broken.cut)
    repairs = tuple(reader.repairs)
    return FoundJson(
        text="".join(reader.out),
        end=reader.position,
        repairs=repairs,
        cost=sum(_COST.get(repair, 0) for repair in repairs),
        left_open=reader.left_open,
    )
