"""Lossless coercions, led by the schema.

- A string becomes the JSON value that it spells, a number only if it prints the same.
- A number becomes the text of a decimal.
- A boolean or a number becomes the option of a string enum that spells it.
- A whole float becomes an integer where only integers are allowed.
- One string becomes a list of one, XML's `<item>`s a list of them.
- The null of an optional argument that cannot be null is left out; `null` as text is null where null is allowed.

Nothing else.
"""

import re
from collections.abc import Mapping

import msgspec

from stages.repair.decoding import decode
from stages.repair.json_text import FoundJson as Found
from stages.repair.json_text import json_at
from stages.schema.compilation import Compiled, Fuel, Place
from stages.schema.value import Json, dotted, kinds, pairs_lost, too_deep

_EXACT = 2**53
"""Up to here a float holds every whole number exactly, so 2.0 is 2 and nothing else."""

_PYTHON: dict[str, Json] = {"True": True, "False": False, "None": None}
"""Python's spelling of JSON's booleans and null, as some models write it; their XML formats hold only strings."""

_Coerced = tuple[Json, list[str]]
"""A value, and the coercions that it needed."""


def coerce(value: Json, schema: Compiled, size: int) -> tuple[Json, tuple[str, ...]]:
    """The value coerced as far as possible, and the name of each coercion (`string to integer at "qty"`).

    `size` is the length of the value's text. A value that no coercion helps stays as it is, and doesn't fit.
    """
    coerced, repairs = _coerced(value, Place(schema, schema.root), Fuel(size))
    return coerced, tuple(repairs)


def _coerced(value: Json, at: Place, fuel: Fuel) -> _Coerced:
    if not fuel.lasts(at):
        return value, []
    repairs: list[str] = []
    for place in at.conjuncts():
        value, more = _coerced(value, place, fuel)
        repairs += more
    for branches in at.alternatives():
        value, more = _alternative(value, branches, fuel)
        repairs += more
    value, more = _here(value, at, fuel)
    return value, repairs + more


def _alternative(value: Json, branches: list[Place], fuel: Fuel) -> _Coerced:
    """The value coerced to the alternative that it fits; else to the only result that the alternatives lead to.

    Alternatives with different results are ambiguous: the value stays.
    """
    meant = next((branch for branch in branches if branch.fits(value)), None)
    if meant is not None:
        return _coerced(value, meant, fuel)
    tried = [coerced for branch in branches if branch.fits((coerced := _coerced(value, branch, fuel))[0])]
    results = {msgspec.json.encode(result) for result, _ in tried}
    return tried[0] if len(results) == 1 else (value, [])


def _here(value: Json, at: Place, fuel: Fuel) -> _Coerced:
    """The value in the type that this part of the schema asks for, and everything in it likewise."""
    retyped, repair = _retyped(value, at.part)
    within, repairs = _children(retyped, at, fuel)
    if repair == _LIST_OF_ONE and not at.fits(within):
        return value, []
    return within, [_noted(repair, at), *repairs] if repair else repairs


def _noted(repair: str, at: Place) -> str:
    return f'{repair} at "{dotted(at.path)}"' if at.path else repair


_LIST_OF_ONE = "string to array of one"
_XML_ITEM = re.compile(r"<item>([^<]*+)</item>")
_XML_ITEMS = re.compile(r"(?:\s*+<item>[^<]*+</item>)++\s*+")
"""An array as models write it in XML."""


def _retyped(value: Json, part: Mapping[str, Json]) -> tuple[Json, str]:
    """The value in the type that is asked for, and the name of the coercion; empty: none."""
    if not isinstance(value, str):
        if part.get("format") == "decimal" and _types(part) == {"string"} and kinds(value) & {"number", "integer"}:
            return msgspec.json.encode(value).decode(), "number to decimal"
        whole = _whole(value, part)
        if whole is not value:
            return whole, "number to integer"
        option = _option(value, part)
        return (value, "") if option is None else (option, f"{_kind(value)} to option")
    if value in ("null", "None") and "null" in _types(part) and "enum" not in part and "const" not in part:
        # Where null is allowed, no model means the text "null".
        return None, "string to null"
    if _asked_for(value, part):
        return value, ""
    spelt = _spelt(value)
    if not isinstance(spelt, str) and _asked_for(spelt, part):
        whole = _whole(spelt, part)
        return whole, f"{_source(spelt)} to {_kind(whole)}"
    # Text that begins like JSON was meant as JSON, not as the only item of a list.
    if "array" in _types(part) and (items := _XML_ITEMS.fullmatch(value)):
        return list(_XML_ITEM.findall(items[0])), "items to array"
    if "array" in _types(part) and value and not value.lstrip().startswith(("[", "{")):
        return [value], _LIST_OF_ONE
    return value, ""


def _option(value: Json, part: Mapping[str, Json]) -> str | None:
    """The listed string that spells this boolean or number, unless the value itself is listed."""
    options = part.get("enum", [part.get("const")])
    if not isinstance(value, bool | int | float) or not isinstance(options, list) or _asked_for(value, part):
        return None
    spelt = msgspec.json.encode(value).decode()
    found = [one for one in options if isinstance(one, str) and one.casefold() == spelt]
    return found[0] if len(found) == 1 else None


def _types(part: Mapping[str, Json]) -> frozenset[str]:
    match part.get("type"):
        case str(name):
            return frozenset({name})
        case list(names):
            return frozenset(name for name in names if isinstance(name, str))
        case _:
            return frozenset()


def _asked_for(value: Json, part: Mapping[str, Json]) -> bool:
    """Whether the value has a type that the part allows, and is one of the values that it lists."""
    types = _types(part)
    if types and not kinds(value) & types:
        return False
    options = [part["const"]] if "const" in part else part.get("enum")
    return not isinstance(options, list) or any(kinds(o) == kinds(value) and o == value for o in options)


def _whole(value: Json, part: Mapping[str, Json]) -> Json:
    """The integer for a float like 2.0 where integers are allowed and other numbers are not; else the value."""
    types = _types(part)
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT
    return int(value) if whole and isinstance(value, float) and "integer" in types and "number" not in types else value


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _spelt(text: str) -> Json:
    """The JSON value that the text spells; a scalar only as it would be printed, so 007 stays text."""
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        value = decode(_any, text)
    except msgspec.DecodeError:
        repaired = _repaired_text(text)
        return _spelt(repaired) if repaired else text
    if isinstance(value, list | dict):
        return text if too_deep(value) or pairs_lost(text, value) else value
    return value if msgspec.json.encode(value).decode() == text else text


def _repaired_text(text: str) -> str | None:
    """Repaired JSON for text with only one possible meaning, such as Python lists; None for any other text."""
    found = json_at(text, 0) if text.startswith(("[", "{")) else None
    if not isinstance(found, Found) or found.cost or not found.repairs or text[found.end :].strip():
        return None
    return found.text


def _source(spelt: Json) -> str:
    return "JSON text" if isinstance(spelt, list | dict) else "string"


def _kind(value: Json) -> str:
    return "integer" if "integer" in kinds(value) and isinstance(value, int) else min(kinds(value) - {"integer"})


def _children(value: Json, at: Place, fuel: Fuel) -> _Coerced:
    match value:
        case dict():
            return _members(value, at, fuel)
        case list():
            return _items(value, at, fuel)
        case _:
            return value, []


def _members(value: dict[str, Json], at: Place, fuel: Fuel) -> _Coerced:
    part = at.part
    declared, required = part.get("properties"), part.get("required")
    optional = declared.keys() - _names(required) if isinstance(declared, dict) else frozenset[str]()
    coerced: dict[str, Json] = {}
    repairs: list[str] = []
    for name, child in value.items():
        place = at.member(name)
        if child is None and name in optional and not place.fits(None):
            repairs.append(_noted("null left out", place))
            continue
        coerced[name], more = _coerced(child, place, fuel)
        repairs += more
    return coerced, repairs


def _names(required: Json) -> frozenset[str]:
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def _items(value: list[Json], at: Place, fuel: Fuel) -> _Coerced:
    coerced: list[Json] = []
    repairs: list[str] = []
    for i, child in enumerate(value):
        item, more = _coerced(child, at.item(i), fuel)
        coerced.append(item)
        repairs += more
    return coerced, repairs
