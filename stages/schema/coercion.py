"""Arguments coerced to the types of a schema, without loss of meaning."""

import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

import msgspec

from stages._later import LazyPattern
from stages.decoding import decode, decode_or, nested
from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import json_at
from stages.schema.judging import Judge, Path, Place
from stages.schema.value import (
    MAX_DEPTH,
    Json,
    any_json,
    dotted,
    json_type,
    kinds,
    members_of,
    names_in,
    pairs_lost,
    types_of,
)

# Lossless coercions of a single value to the type that a part of a schema requires.

_EXACT = 2**53
"""Up to here floats represent every whole number exactly, so 2.0 can only mean 2."""

_WORDS: Mapping[str, Json] = MappingProxyType(
    {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "none": None}
)
"""Python's and YAML's words for booleans and null, which models use in formats in which every value is a string."""

_LONGEST_WORD = max(map(len, _WORDS))
_LIST_OF_ONE = "string to array of one"
_TYPED = {"type", "value"}
_XML_ITEM = LazyPattern(r"<item>([^<]*+)</item>")
_XML_ITEMS = LazyPattern(r"(?:\s*+<item>[^<]*+</item>)++\s*+")
"""An array as some models write it in XML."""


def _retype(value: Json, part: dict[str, Json], judge: Judge) -> tuple[Json, str]:
    """The value in the required type, and the name of the coercion; empty if there was none."""
    if isinstance(value, dict) and value.keys() == _TYPED and types_of(part) and not _of_type(value, part):
        inner, _ = _retype(value["value"], part, judge)
        return inner, "value with its type to value"
    if value is None or isinstance(value, list | dict):
        return value, ""
    if not isinstance(value, str):
        if part.get("format") == "decimal" and types_of(part) == ("string",) and kinds(value) & {"number", "integer"}:
            return msgspec.json.encode(value).decode(), "number to decimal"
        whole = _whole(value, part)
        if whole is not value:
            return whole, "number to integer"
        if isinstance(value, int) and not isinstance(value, bool) and _is_text(part) and judge.lists(part, str(value)):
            return str(value), "integer to string"
        option = _option(value, part, judge)
        return (value, "") if option is None else (option, f"{json_type(value)} to option")
    if value in ("null", "None") and "null" in types_of(part) and "enum" not in part and "const" not in part:
        # If null is allowed, no model means the text "null".
        return None, "string to null"
    if _of_type(value, part) and judge.lists(part, value):
        return value, ""
    if "enum" in part and (option := judge.in_other_case(part, value)):
        return option, "case of option"
    spelt = _spelt(value)
    if not isinstance(spelt, str) and _of_type(spelt, part) and judge.lists(part, spelt):
        whole = _whole(spelt, part)
        source = "JSON text" if isinstance(spelt, list | dict) else "string"
        return whole, f"{source} to {json_type(whole)}"
    if "array" in types_of(part) and (items := _XML_ITEMS.compiled.fullmatch(value)):
        return list(_XML_ITEM.compiled.findall(items[0])), "items to array"
    # Text that begins like JSON was meant as JSON, not as the only item of a list.
    if "array" in types_of(part) and value and not value.lstrip().startswith(("[", "{")):
        return [value], _LIST_OF_ONE
    return value, ""


def _is_text(part: Mapping[str, Json]) -> bool:
    """Whether the part allows text but not numbers."""
    return "string" in (types := types_of(part)) and not {"integer", "number"} & {*types}


def _option(value: Json, part: dict[str, Json], judge: Judge) -> str | None:
    """The listed string that spells this boolean or number, in any case; None if there are several, or none.

    None, too, if the value itself is listed.
    """
    if not isinstance(value, bool | int | float) or (_of_type(value, part) and judge.lists(part, value)):
        return None
    return judge.in_other_case(part, msgspec.json.encode(value).decode())


def _of_type(value: Json, part: Mapping[str, Json]) -> bool:
    """Whether the value has a type that the part allows."""
    types = types_of(part)
    return not types or not kinds(value).isdisjoint(types)


def _whole(value: Json, part: Mapping[str, Json]) -> Json:
    """The integer for a float like 2.0, if integers are allowed but other numbers are not; else the value."""
    if not isinstance(value, float) or not value.is_integer() or abs(value) > _EXACT:
        return value
    types = types_of(part)
    return int(value) if "integer" in types and "number" not in types else value


_NUMBER = LazyPattern(r"-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_BEGINS_JSON = frozenset('"+-0123456789tfn[{ \t\r\n')


def _spelt(text: str) -> Json:
    """The JSON value that the text spells, else the text. Numbers must be valid JSON, so 007 stays text."""
    if len(text) <= _LONGEST_WORD and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text[:1] not in _BEGINS_JSON:
        return text
    if text.startswith("+"):
        return _number(text[1:], text) if text[1:2].isdecimal() else text
    try:
        value = decode(any_json, text)
    except msgspec.DecodeError:
        repaired = _repaired_text(text)
        return _spelt(repaired) if repaired else text
    if isinstance(value, list | dict):
        return text if nested(text, MAX_DEPTH) or pairs_lost(text, value) else value
    if isinstance(value, str):
        # A number in quotation marks, as models write it in XML.
        return value if value == text else _number(value, text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(text.strip(), text)
    return value if msgspec.json.encode(value).decode() == text else text


def _number(text: str, otherwise: str) -> Json:
    """The number that the text spells, if it can be represented exactly; else `otherwise`."""
    if not _NUMBER.compiled.fullmatch(text):
        return otherwise
    value = decode_or(any_json, text, otherwise)
    exact = isinstance(value, int) or (isinstance(value, float) and Decimal(repr(value)) == Decimal(text))
    return value if exact else otherwise


_WORDS_ALONE = frozenset({"bare_string", "single_quotes"})
"""Repairs of YAML's lists, `[red, blue]`: where a list is required, they mean nothing else."""


def _repaired_text(text: str) -> str | None:
    """The JSON for text that can only be repaired in one way, such as a Python list; None for any other text."""
    found = json_at(text, 0) if text.startswith(("[", "{")) else None
    if not isinstance(found, FoundJson) or not found.repairs or text[found.end :].strip():
        return None
    if found.cost and not {*found.repairs} <= _WORDS_ALONE:
        return None
    return found.text


# Lossless coercions, guided by the schema. These, and no others:
#
# - A string becomes the JSON value that it spells; a number only if its value is the same: 2.50, +3, 1e1, " 7 ",
#   but not 007. A boolean also from yes, no, on and off.
# - A number becomes text if a decimal is required, an integer becomes text if a string is.
# - A boolean or a number becomes the option of a string enum that spells it.
# - A whole float becomes an integer if only integers are allowed.
# - A string becomes the option of an enum that it is but for its case and blanks around it.
# - A string becomes a list of one; XML `<item>`s and YAML's `[red, blue]` become a list.
# - `{"type": …, "value": …}`, as models echo a schema, becomes the value where no object is allowed.
# - A null for an optional argument that cannot be null is left out; the text "null" becomes null if null is allowed.

_Coerced = tuple[Json, list[str]]
"""A value, and the coercions that made it."""


def coerce(value: Json, judge: Judge, *, improve: bool) -> tuple[Json, tuple[str, ...]]:
    """The value coerced as far as possible, and the name of each coercion (`string to integer at "qty"`).

    Values that no coercion helps stay unchanged, and do not fit. `improve`: also coerce parts that fit already, such as
    2.0 to 2.
    """
    coerced, repairs = _coerced(value, Place(judge, judge.schema.root), _Walk(improve=improve))
    return coerced, tuple(repairs)


_FURTHER = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
"""Keywords whose parts apply to the same value."""


class _Walk:
    """The state of one walk: its results by part, value and path.

    A result is stored with its value, so that the value's id stays unique.
    """

    def __init__(self, *, improve: bool) -> None:
        self.improve = improve
        self.wrapping = False
        self.known: dict[tuple[int, int, Path, bool], tuple[Json, _Coerced]] = {}


def _coerced(value: Json, at: Place, walk: _Walk) -> _Coerced:
    if not at.rules:
        return value, []
    further, inner = not at.rules.keys().isdisjoint(_FURTHER), isinstance(value, list | dict)
    if not further and not inner:
        return _here(value, at, walk) if at.lasts() else (value, [])
    if inner and not walk.improve and at.fits(value):
        return value, []
    key = id(at.part), id(value), at.path, walk.wrapping
    if key not in walk.known:
        if not at.lasts():
            return value, []
        walk.known[key] = value, _through(value, at, walk) if further else _here(value, at, walk)
    return walk.known[key][1]


def _through(value: Json, at: Place, walk: _Walk) -> _Coerced:
    repairs: list[str] = []
    for place in at.conjuncts():
        value, more = _coerced(value, place, walk)
        repairs += more
    for branches in at.alternatives():
        value, more = _alternative(value, branches, walk)
        repairs += more
    value, more = _here(value, at, walk)
    return value, repairs + more


def _alternative(value: Json, branches: list[Place], walk: _Walk) -> _Coerced:
    """The value coerced by the alternative that it fits; else the only result that the alternatives lead to.

    If they lead to different results, the value is ambiguous and stays unchanged.
    """
    meant = next((branch for branch in branches if branch.fits(value)), None)
    if meant is not None:
        return _coerced(value, meant, walk)
    # A result without coercions would be the value itself, which fits none of them.
    tried = [one for branch in branches if (one := _coerced(value, branch, walk))[1] and branch.fits(one[0])]
    results = {msgspec.json.encode(result) for result, _ in tried}
    return tried[0] if len(results) == 1 else (value, [])


def _here(value: Json, at: Place, walk: _Walk) -> _Coerced:
    """The value in the type that this part of the schema requires, with its members or items coerced, too."""
    retyped, repair = _retype(value, at.rules, at.judge)
    if repair == _LIST_OF_ONE:
        # A schema of lists that contain lists like themselves would be wrapped without end.
        if walk.wrapping:
            return value, []
        walk.wrapping = True
        within, repairs = _children(retyped, at, walk)
        walk.wrapping = False
        return (within, [_noted(repair, at), *repairs]) if at.fits(within) else (value, [])
    within, repairs = _children(retyped, at, walk)
    return within, [_noted(repair, at), *repairs] if repair else repairs


def _noted(repair: str, at: Place) -> str:
    return f'{repair} at "{dotted(at.path)}"' if at.path else repair


def _children(value: Json, at: Place, walk: _Walk) -> _Coerced:
    match value:
        case dict():
            return _members(value, at, walk)
        case list():
            return _items(value, at, walk)
        case _:
            return value, []


def _members(value: dict[str, Json], at: Place, walk: _Walk) -> _Coerced:
    declared, required = members_of(at.rules), {*names_in(at.rules.get("required"))}
    changed, left_out, repairs = dict[str, Json](), list[str](), list[str]()
    for name, child, place in at.members(value):
        if child is None and name in declared and name not in required and not place.fits(None):
            left_out.append(name)
            repairs.append(_noted("null left out", place))
            continue
        coerced, more = _coerced(child, place, walk)
        if more:
            changed[name] = coerced
            repairs += more
    if not repairs:
        return value, []
    changed = value | changed
    for name in left_out:
        del changed[name]
    return changed, repairs


def _items(value: list[Json], at: Place, walk: _Walk) -> _Coerced:
    changed, repairs = dict[int, Json](), list[str]()
    for i, item, place in at.items(value):
        coerced, more = _coerced(item, place, walk)
        if more:
            changed[i] = coerced
            repairs += more
    return ([changed.get(i, item) for i, item in enumerate(value)], repairs) if repairs else (value, [])
