"""JSON values: their types, their text in messages, and limits of schemas."""

from collections.abc import Mapping, Sequence
from typing import TypeGuard

import msgspec
from msgspec import Raw

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
"""The value of a JSON text. Numbers are ints and floats, never Decimals."""

any_json: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
json_members: msgspec.json.Decoder[dict[str, Json]] = msgspec.json.Decoder(dict)
raw_members: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
"""Decoders of any JSON value, and of an object by its members, decoded or left as they are."""

_SHOWN = 80
"""Maximum characters of a value, or of one name in a path, in a message."""

MAX_BYTES = 500_000
"""Maximum bytes of a schema that arguments are checked against; no model could read more."""

MAX_DEPTH = 64
"""Maximum levels of nested arrays and objects."""


def kinds(value: Json) -> frozenset[str]:
    """The types of the value in JSON Schema's terms; a whole number is both an integer and a number."""
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"integer", "number"} if value.is_integer() else {"number"})
        case str():
            return frozenset({"string"})
        case list():
            return frozenset({"array"})
        case dict():
            return frozenset({"object"})


def json_type(value: Json) -> str:
    """The value's type in JSON Schema's terms; `integer` only for numbers written without a fraction."""
    return "integer" if isinstance(value, int) and not isinstance(value, bool) else min(kinds(value) - {"integer"})


def types_of(part: Mapping[str, Json]) -> tuple[str, ...]:
    """The types that a part of a schema names; empty if it names none."""
    given = part.get("type")
    return (given,) if isinstance(given, str) else tuple(names_in(given))


def names_in(listed: Json) -> list[str]:
    """The texts in a list, such as `required` of a schema; empty for any other value."""
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def members_of(part: Mapping[str, Json]) -> dict[str, Json]:
    """The members that a part of a schema declares, each with its own part."""
    declared = part.get("properties")
    return declared if isinstance(declared, dict) else {}


def optional_members(part: Mapping[str, Json]) -> frozenset[str]:
    """The names of the declared members that are not required."""
    return frozenset(members_of(part)) - frozenset(names_in(part.get("required")))


def cut_text(text: str, limit: int = _SHOWN) -> str:
    """The text, cut to `limit` characters with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def shown_value(value: Json) -> str:
    """The value as JSON text, cut for a message."""
    return cut_text(msgspec.json.encode(value).decode())


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it, `items[2].qty`; empty for the whole."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{cut_text(step)}" for step in path)
    return text.removeprefix(".")


def is_pointer(reference: Json) -> TypeGuard[str]:
    """Whether a `$ref` is a JSON pointer into its own document: `#` or `#/…`."""
    return isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))


def at_pointer(root: Json, pointer: str) -> Json:
    """The value at a JSON pointer in a reference (RFC 6901, section 6), such as `#/$defs/a~1b%20c`; None if missing."""
    if "%" in pointer:
        from urllib.parse import unquote  # noqa: PLC0415 - hardly any reference needs it

        pointer = unquote(pointer)
    found = root
    for token in pointer.split("/")[1:]:
        match found:
            case dict():
                found = found.get(token.replace("~1", "/").replace("~0", "~"))
            case list() if token.isdecimal() and int(token) < len(found):
                found = found[int(token)]
            case _:
                return None
    return found


def pairs_lost(text: str, value: Json) -> bool:
    """Whether the text has a name twice in one object, so that the decoder kept only the last value.

    Found by counting colons, plain and escaped: each lost pair loses one, and nothing else does.
    """
    escapes = text.replace(r"\\", "")  # so that every remaining backslash begins an escape
    colons = text.count(":") + escapes.count(r"\u003a") + escapes.count(r"\u003A")
    return colons > msgspec.json.encode(value).count(b":")
