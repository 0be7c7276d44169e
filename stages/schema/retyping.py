"""Retype one value: the lossless coercions of a single value to the type that a part of a schema asks for."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import product

import msgspec

from stages.repair.decoding import decode
from stages.repair.json_text import FoundJson, json_at
from stages.schema.value import Json, kinds, pairs_lost, too_deep

_EXACT = 2**53
"""Up to here a float holds every whole number exactly, so 2.0 is 2 and nothing else."""

_PYTHON: dict[str, Json] = {"True": True, "False": False, "None": None}
"""Python's spelling of JSON's booleans and null, as some models write it; their XML formats hold only strings."""

LIST_OF_ONE = "string to array of one"
_XML_ITEM = re.compile(r"<item>([^<]*+)</item>")
_XML_ITEMS = re.compile(r"(?:\s*+<item>[^<]*+</item>)++\s*+")
"""An array as models write it in XML."""


def retype(value: Json, part: Mapping[str, Json], lists: Callable[[Json], bool]) -> tuple[Json, str]:
    """The value in the type that is asked for, and the name of the coercion; empty: none.

    `lists`: whether a value is one that the part lists, or the part lists none.
    """
    if not isinstance(value, str):
        if part.get("format") == "decimal" and _types(part) == {"string"} and kinds(value) & {"number", "integer"}:
            return msgspec.json.encode(value).decode(), "number to decimal"
        whole = _whole(value, part)
        if whole is not value:
            return whole, "number to integer"
        option = _option(value, part, lists)
        return (value, "") if option is None else (option, f"{_kind(value)} to option")
    if value in ("null", "None") and "null" in _types(part) and "enum" not in part and "const" not in part:
        # Where null is allowed, no model means the text "null".
        return None, "string to null"
    if _of_type(value, part) and lists(value):
        return value, ""
    spelt = _spelt(value)
    if not isinstance(spelt, str) and _of_type(spelt, part) and lists(spelt):
        whole = _whole(spelt, part)
        return whole, f"{_source(spelt)} to {_kind(whole)}"
    # Text that begins like JSON was meant as JSON, not as the only item of a list.
    if "array" in _types(part) and (items := _XML_ITEMS.fullmatch(value)):
        return list(_XML_ITEM.findall(items[0])), "items to array"
    if "array" in _types(part) and value and not value.lstrip().startswith(("[", "{")):
        return [value], LIST_OF_ONE
    return value, ""


def _option(value: Json, part: Mapping[str, Json], lists: Callable[[Json], bool]) -> str | None:
    """The listed string that spells this boolean or number, unless the value itself is listed."""
    if not isinstance(value, bool | int | float) or not part.keys() & {"enum", "const"}:
        return None
    if _of_type(value, part) and lists(value):
        return None
    spelt = msgspec.json.encode(value).decode()
    found = [one for one in _spellings(spelt) if lists(one)]
    return found[0] if len(found) == 1 else None


def _spellings(text: str) -> Iterable[str]:
    """The text in all mixtures of upper and lower case: `1e5`, `True`."""
    return map("".join, product(*({letter, letter.upper()} for letter in text)))


def _types(part: Mapping[str, Json]) -> frozenset[str]:
    match part.get("type"):
        case str(name):
            return frozenset({name})
        case list(names):
            return frozenset(name for name in names if isinstance(name, str))
        case _:
            return frozenset()


def _of_type(value: Json, part: Mapping[str, Json]) -> bool:
    """Whether the value has a type that the part allows."""
    types = _types(part)
    return not types or bool(kinds(value) & types)


def _whole(value: Json, part: Mapping[str, Json]) -> Json:
    """The integer for a float like 2.0 where integers are allowed and other numbers are not; else the value."""
    types = _types(part)
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT
    return int(value) if whole and isinstance(value, float) and "integer" in types and "number" not in types else value


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


_BEGINS_JSON = frozenset('"-0123456789tfn[{ \t\r\n')


def _spelt(text: str) -> Json:
    """The JSON value that the text spells; a scalar only as it would be printed, so 007 stays text."""
    if text in _PYTHON:
        return _PYTHON[text]
    if text[:1] not in _BEGINS_JSON:
        return text
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
    if not isinstance(found, FoundJson) or found.cost or not found.repairs or text[found.end :].strip():
        return None
    return found.text


def _source(spelt: Json) -> str:
    return "JSON text" if isinstance(spelt, list | dict) else "string"


def _kind(value: Json) -> str:
    return "integer" if "integer" in kinds(value) and isinstance(value, int) else min(kinds(value) - {"integer"})
