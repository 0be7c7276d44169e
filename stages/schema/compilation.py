"""A compiled schema: its validator, the validators of its parts, and the way through it along a value."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self, TypeGuard

import msgspec
from msgspec import Raw, Struct

from stages.repair.decoding import decode
from stages.schema.value import MAX_DEPTH, Json, cut_text, dotted, shown_value, too_deep

if TYPE_CHECKING:
    from jsonschema_rs import FancyRegexOptions, RegexOptions, ValidationError, Validator, ValidatorMap

BACKTRACKING = 10_000
"""Maximum steps of a pattern with look-around or back-references; other patterns take linear time."""

_LEVELS = 120
"""Maximum depth to which parts of a schema are followed, references included."""


class SchemaError(ValueError):
    """A tool's parameters are not a JSON Schema that forge can check with; says where and why."""


class Compiled(Struct, frozen=True, kw_only=True):
    """A schema, its validator, and the validators of its parts by JSON pointer (RFC 6901): `#/properties/qty`."""

    root: Mapping[str, Json]
    whole: "Validator"
    parts: "ValidatorMap"


class Place(Struct, frozen=True):
    """A part of a schema and the place in a value that it applies to."""

    schema: Compiled
    part: Mapping[str, Json]
    pointer: str = "#"
    path: tuple[str | int, ...] = ()
    level: int = 0

    @property
    def known(self) -> bool:
        """Whether the pointer leads to a part of the schema."""
        return self.pointer in self.schema.parts

    def fits(self, value: Json) -> bool:
        """Whether the value fits the part; False where there is none."""
        validator = self.schema.parts.get(self.pointer)
        return validator is not None and validator.is_valid(value)

    def conjuncts(self) -> list[Self]:
        """Further parts that apply to the same value: the target of `$ref`, and `allOf`."""
        target = self.part.get("$ref")
        referred = [self._at(at_pointer(self.schema.root, target), target)] if _local(target) else []
        return referred + self._branches("allOf") if "allOf" in self.part else referred

    def alternatives(self) -> list[list[Self]]:
        """The lists of parts of which one has to apply to the same value: `anyOf` and `oneOf`."""
        return [self._branches(keyword) for keyword in ("anyOf", "oneOf") if keyword in self.part]

    def member(self, name: str) -> Self:
        """The part for that member of an object."""
        declared = self.part.get("properties")
        if isinstance(declared, dict) and name in declared:
            token = name.replace("~", "~0").replace("/", "~1")
            return self._child(declared[name], f"properties/{token}", name)
        return self._child(self.part.get("additionalProperties"), "additionalProperties", name)

    def item(self, index: int) -> Self:
        """The part for that item of an array: from `prefixItems` (or draft 7's list of `items`), or for the rest."""
        items, first = self.part.get("items"), self.part.get("prefixItems")
        keyword, leading = ("items", items) if isinstance(items, list) else ("prefixItems", first)
        if isinstance(leading, list) and index < len(leading):
            return self._child(leading[index], f"{keyword}/{index}", index)
        rest = "additionalItems" if keyword == "items" else "items"
        return self._child(self.part.get(rest), rest, index)

    def _branches(self, keyword: str) -> list[Self]:
        branches = self.part[keyword]
        listed = branches if isinstance(branches, list) else []
        return [self._at(branch, f"{self.pointer}/{keyword}/{i}") for i, branch in enumerate(listed)]

    def _at(self, part: Json, pointer: str) -> Self:
        return type(self)(self.schema, _as_part(part), pointer, self.path, self.level + 1)

    def _child(self, part: Json, tokens: str, step: str | int) -> Self:
        pointer, path = f"{self.pointer}/{tokens}", (*self.path, step)
        return type(self)(self.schema, _as_part(part), pointer, path, self.level + 1)


def _as_part(part: Json) -> Mapping[str, Json]:
    return part if isinstance(part, dict) else {}


def _local(target: Json) -> TypeGuard[str]:
    return isinstance(target, str) and target.startswith("#")


def at_pointer(root: Json | Mapping[str, Json], pointer: str) -> Json:
    """The value at a JSON pointer; None: there is none."""
    found = root
    for token in pointer.split("/")[1:]:
        match found:
            case Mapping():
                found = found.get(token.replace("~1", "/").replace("~0", "~"))
            case list() if token.isdecimal() and int(token) < len(found):
                found = found[int(token)]
            case _:
                return None
    return dict(found) if isinstance(found, Mapping) else found


class Fuel:
    """What one walk through a schema beside a value may still cost. It is used up by the walk that it was made for.

    Where a schema refers to itself in several alternatives, trying all of them would take exponential time. `size` is
    the length of the value's text.
    """

    def __init__(self, size: int) -> None:
        self._left = 1000 + 8 * size

    def lasts(self, at: Place) -> bool:
        """Whether to go on at this place, which costs a unit; no place is followed deeper than `LEVELS`."""
        if at.level > _LEVELS or not self._left:
            return False
        self._left -= 1
        return True


def compiled(parameters: bytes | Raw) -> Compiled:
    """The schema, compiled. Raises SchemaError; nothing that it refers to is ever fetched."""
    from jsonschema_rs import FancyRegexOptions, RegexOptions  # noqa: PLC0415 - it takes longer to import than most of forge

    schema = _read(parameters)
    try:
        return _with(schema, RegexOptions())
    except SchemaError:
        # A pattern with look-around or back-references has no linear-time form; its steps are bounded instead.
        return _with(schema, FancyRegexOptions(backtrack_limit=BACKTRACKING))


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _read(parameters: bytes | Raw) -> dict[str, Json]:
    try:
        schema = decode(_any, bytes(parameters))
    except msgspec.DecodeError as error:
        raise SchemaError(f"the schema is no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemaError(f"the schema is {shown_value(schema)}; write a JSON object")
    if too_deep(schema):
        raise SchemaError(f"the schema is nested deeper than {MAX_DEPTH} levels")
    types = schema.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise SchemaError(f'the schema is wrong at "type": arguments are an object, not {shown_value(types)}')
    return schema


def _with(schema: dict[str, Json], patterns: "RegexOptions | FancyRegexOptions") -> Compiled:
    from jsonschema_rs import ValidationError, validator_for, validator_map_for  # noqa: PLC0415 - as above

    try:
        whole = validator_for(schema, pattern_options=patterns, validate_formats=True, offline=True)
        parts = validator_map_for(schema, pattern_options=patterns, validate_formats=True, offline=True)
    except ValidationError as error:
        raise SchemaError(_explained(error)) from error
    return Compiled(root=schema, whole=whole, parts=parts)


def _explained(error: "ValidationError") -> str:
    where = error.instance_path
    if error.kind.name == "$ref":
        return f"the schema refers to what is not in it: {error.message}; refer to its own parts, as in #/$defs/name"
    keyword = next((step for step in reversed(where) if isinstance(step, str)), "schema")
    return f'the schema is wrong at "{dotted(where)}": {cut_text(error.message, 200)} (keyword "{keyword}")'
