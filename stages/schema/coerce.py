"""Coercions that lose and invent nothing, led by the schema (D8).

A string becomes the JSON value that it spells, a number only where it prints the same; a whole float becomes
an integer where only integers are asked for; one string becomes a list of one; the null of an optional
argument that cannot be null is left out. Nothing else.
"""

from collections.abc import Iterator

import msgspec
from jsonschema_rs import ValidatorMap
from msgspec import Struct

from stages.schema.value import Json, dotted, kinds, pairs_lost, too_deep

EXACT = 2**53
"""Up to here a float holds every whole number, so that 2.0 is 2 and nothing else."""

LEVELS = 120
"""Parts of a schema that are followed into one another, references included; deeper values stay as they are."""

Path = tuple[str | int, ...]
Mended = tuple[Json, list[str]]
"""A value, and the coercions that it took."""


class Compiled(Struct, frozen=True, kw_only=True):
    """A schema, and the validators of its parts by their JSON pointer (RFC 6901), as in `#/properties/qty`."""

    root: dict[str, Json]
    parts: ValidatorMap

    def fits(self, value: Json, pointer: str) -> bool:
        """Whether the value fits the part; False for a pointer that leads nowhere."""
        validator = self.parts.get(pointer)
        return validator is not None and validator.is_valid(value)

    def part(self, pointer: str) -> dict[str, Json]:
        """The part as data; empty for one that asks for nothing or is not there."""
        found: Json = self.root
        for token in pointer.split("/")[1:]:
            match found:
                case dict():
                    found = found.get(token.replace("~1", "/").replace("~0", "~"))
                case list() if token.isdecimal() and int(token) < len(found):
                    found = found[int(token)]
                case _:
                    return {}
        return found if isinstance(found, dict) else {}


class _At(Struct, frozen=True):
    """Where the work is: in the schema and in the value. `fuel` bounds it all, `level` the nesting."""

    schema: Compiled
    fuel: Iterator[int]
    pointer: str = "#"
    path: Path = ()
    level: int = 0

    def part(self, pointer: str) -> "_At":
        return _At(self.schema, self.fuel, pointer, self.path, self.level + 1)

    def child(self, pointer: str, step: str | int) -> "_At":
        return _At(self.schema, self.fuel, pointer, (*self.path, step), self.level + 1)

    def fits(self, value: Json) -> bool:
        return self.schema.fits(value, self.pointer)

    def noted(self, repair: str) -> str:
        return f'{repair} at "{dotted(self.path)}"' if self.path else repair


def coerce(value: Json, schema: Compiled, size: int) -> tuple[Json, tuple[str, ...]]:
    """The value as the schema asks for it, as far as coercions lead, and each one (`string to integer at "qty"`).

    `size`, the length of the JSON text, bounds the work: where a schema refers to itself in several
    alternatives, trying all of them would take exponential time. What is left undone doesn't fit.
    """
    mended, repairs = _mend(value, _At(schema, iter(range(1000 + 8 * size))))
    return mended, tuple(repairs)


def _mend(value: Json, at: _At) -> Mended:
    if at.level > LEVELS or next(at.fuel, None) is None:
        return value, []
    part = at.schema.part(at.pointer)
    repairs: list[str] = []
    for pointer in _conjuncts(part, at.pointer):
        value, more = _mend(value, at.part(pointer))
        repairs += more
    for keyword in ("anyOf", "oneOf"):
        value, more = _alternative(value, part.get(keyword), at.part(f"{at.pointer}/{keyword}"))
        repairs += more
    value, more = _here(value, part, at)
    return value, repairs + more


def _conjuncts(part: dict[str, Json], pointer: str) -> list[str]:
    """The pointers of the parts that hold for the same value besides."""
    target, every = part.get("$ref"), part.get("allOf")
    referred = [target] if isinstance(target, str) and target.startswith("#") else []
    return referred + ([f"{pointer}/allOf/{i}" for i in range(len(every))] if isinstance(every, list) else [])


def _alternative(value: Json, branches: Json, at: _At) -> Mended:
    """The value as the alternative that it fits has it; else as all those have it that coercions lead to.

    Two alternatives with two different results are ambiguous, and the value stays.
    """
    if not isinstance(branches, list):
        return value, []
    places = [at.part(f"{at.pointer}/{i}") for i in range(len(branches))]
    meant = next((place for place in places if place.fits(value)), None)
    if meant is not None:
        return _mend(value, meant)
    tried = [mended for place in places if place.fits((mended := _mend(value, place))[0])]
    results = {msgspec.json.encode(result) for result, _ in tried}
    return tried[0] if len(results) == 1 else (value, [])


def _here(value: Json, part: dict[str, Json], at: _At) -> Mended:
    """The value in the type that the part itself asks for, and what is in it likewise."""
    retyped, repair = _retyped(value, part)
    within, repairs = _children(retyped, part, at)
    if repair == LIST_OF_ONE and not at.fits(within):
        return value, []
    return within, [at.noted(repair), *repairs] if repair else repairs


LIST_OF_ONE = "string to array of one"


def _retyped(value: Json, part: dict[str, Json]) -> tuple[Json, str]:
    """The value in the type that is asked for, and the name of the coercion, empty for none."""
    if not isinstance(value, str):
        whole = _whole(value, part)
        return whole, "number to integer" if whole is not value else ""
    if _asked_for(value, part):
        return value, ""
    spelt = _spelt(value)
    if not isinstance(spelt, str) and _asked_for(spelt, part):
        whole = _whole(spelt, part)
        return whole, f"{_source(spelt)} to {_kind(whole)}"
    # Text that begins like JSON was meant as JSON: as the only item of a list it would be garbage.
    if "array" in _types(part) and value and not value.lstrip().startswith(("[", "{")):
        return [value], LIST_OF_ONE
    return value, ""


def _types(part: dict[str, Json]) -> frozenset[str]:
    match part.get("type"):
        case str(name):
            return frozenset({name})
        case list(names):
            return frozenset(name for name in names if isinstance(name, str))
        case _:
            return frozenset()


def _asked_for(value: Json, part: dict[str, Json]) -> bool:
    """Whether the value has a type that the part names, and is among the values that it lists."""
    types = _types(part)
    if types and not kinds(value) & types:
        return False
    options = [part["const"]] if "const" in part else part.get("enum")
    return not isinstance(options, list) or any(kinds(o) == kinds(value) and o == value for o in options)


def _whole(value: Json, part: dict[str, Json]) -> Json:
    """The integer for a float like 2.0 where integers are asked for and other numbers are not; else the value."""
    types = _types(part)
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= EXACT
    return int(value) if whole and isinstance(value, float) and "integer" in types and "number" not in types else value


def _spelt(text: str) -> Json:
    """The JSON value that the text spells: a scalar only as it is printed, so that 007 stays text."""
    try:
        value: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    if isinstance(value, list | dict):
        return text if too_deep(value) or pairs_lost(text, value) else value
    return value if msgspec.json.encode(value).decode() == text else text


def _source(spelt: Json) -> str:
    return "JSON text" if isinstance(spelt, list | dict) else "string"


def _kind(value: Json) -> str:
    return "integer" if "integer" in kinds(value) and isinstance(value, int) else min(kinds(value) - {"integer"})


def _children(value: Json, part: dict[str, Json], at: _At) -> Mended:
    match value:
        case dict():
            return _properties(value, part, at)
        case list():
            return _items(value, part, at)
        case _:
            return value, []


def _properties(value: dict[str, Json], part: dict[str, Json], at: _At) -> Mended:
    declared, required = part.get("properties"), part.get("required")
    mended: dict[str, Json] = {}
    repairs: list[str] = []
    for name, child in value.items():
        known = isinstance(declared, dict) and name in declared
        token = name.replace("~", "~0").replace("/", "~1")
        place = at.child(f"{at.pointer}/properties/{token}" if known else f"{at.pointer}/additionalProperties", name)
        optional = known and not (isinstance(required, list) and name in required)
        if child is None and optional and not place.fits(None):
            repairs.append(place.noted("null left out"))
            continue
        mended[name], more = _mend(child, place)
        repairs += more
    return mended, repairs


def _items(value: list[Json], part: dict[str, Json], at: _At) -> Mended:
    """Each item as its place in `prefixItems`, or in draft 7's list of `items`, asks for it, the rest as `items`."""
    leading = next((key for key in ("prefixItems", "items") if isinstance(part.get(key), list)), None)
    first = part.get(leading) if leading else None
    count = len(first) if isinstance(first, list) else 0
    rest = "additionalItems" if leading == "items" else "items"
    mended: list[Json] = []
    repairs: list[str] = []
    for i, child in enumerate(value):
        pointer = f"{at.pointer}/{leading}/{i}" if i < count else f"{at.pointer}/{rest}"
        item, more = _mend(child, at.child(pointer, i))
        mended.append(item)
        repairs += more
    return mended, repairs
