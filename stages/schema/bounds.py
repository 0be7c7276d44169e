"""The rules of strings, numbers and lengths that llama.cpp's converter supports."""

from stages.schema.pattern import MOST_REPEATS, plain_pattern
from stages.schema.value import Json

SchemaPart = dict[str, Json]
Supported = tuple[SchemaPart, list[str]]
"""The supported rules, and the keywords of the others."""

_FORMATS = frozenset({"date", "time", "date-time", "uuid"})

_EXACT = 2**53
"""Beyond this the converter's arithmetic on bounds is not reliable."""


def string_rules(schema: SchemaPart, *, typed: bool) -> Supported:
    """The rules of a string: one of pattern, format and length, as the converter only looks at the first it finds."""
    pattern, name = schema.get("pattern"), schema.get("format")
    asked: SchemaPart = {}
    if isinstance(pattern, str) and (plainly := plain_pattern(pattern)) is not None:
        asked = {"pattern": plainly}
    elif isinstance(name, str) and name in _FORMATS:
        asked = {"format": name}
    elif typed:
        asked, _ = length_rules(schema, "minLength", "maxLength")
    given = {"pattern", "format", "minLength", "maxLength"} & schema.keys()
    return asked, sorted(given - asked.keys())


def length_rules(schema: SchemaPart, low: str, high: str) -> Supported:
    """Two limits of a length, unless they make the grammar too large or leave no value."""
    given = [limit for limit in (low, high) if limit in schema]
    whole = {limit: n for limit in given if (n := _whole(schema[limit])) is not None and 0 <= n <= MOST_REPEATS}
    asked: SchemaPart = {} if whole.get(low, 0) > whole.get(high, MOST_REPEATS) else {**whole}
    return asked, [limit for limit in given if limit not in asked]


def number_rules(schema: SchemaPart, *, integers: bool) -> Supported:
    """The bounds of a number. Only those of an integer become grammar; they must be integers and leave a value."""
    given = {name: schema[name] for name in _LOWER + _UPPER if name in schema}
    if not integers:
        numbers: SchemaPart = {name: bound for name, bound in given.items() if not isinstance(bound, bool)}
        return numbers, [name for name in given if name not in numbers]
    whole = {name: n for name, bound in given.items() if (n := _whole(bound)) is not None and abs(n) <= _EXACT}
    lowest = max((whole[name] + n for n, name in enumerate(_LOWER) if name in whole), default=-_EXACT)
    highest = min((whole[name] - n for n, name in enumerate(_UPPER) if name in whole), default=_EXACT)
    asked: SchemaPart = {**whole} if lowest <= highest else {}
    return asked, [name for name in given if name not in asked]


_LOWER = ("minimum", "exclusiveMinimum")
_UPPER = ("maximum", "exclusiveMaximum")


def _whole(limit: Json) -> int | None:
    """The limit as an integer; None if it is not one (draft 4 has `exclusiveMinimum: true`)."""
    match limit:
        case bool():
            return None
        case int():
            return limit
        case float() if limit.is_integer():
            return int(limit)
        case _:
            return None
