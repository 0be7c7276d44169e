"""The rules of objects and arrays that llama.cpp's converter supports."""

import re
from collections.abc import Callable

from stages.schema.bounds import SchemaPart, Supported, length_rules
from stages.schema.value import Json

Inner = Callable[[Json, str], SchemaPart]
"""Projects an inner part, given the step to it (`.name`, `[]`)."""

_CONDITIONAL = ("anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies")
"""Rules that can mention further members of an object."""


def any_value() -> SchemaPart:
    """A part that accepts every value; an empty schema would be an object to the converter."""
    return {"type": ["object", "array", "string", "number", "boolean", "null"]}


_EXCLUDABLE = re.compile(r"[A-Za-z0-9_./~ ]+")
"""Names that the converter can exclude from further members: it copies their bytes into character classes."""


def object_rules(schema: SchemaPart, inner: Inner) -> Supported:
    """The declared or required members, and the rule for others."""
    declared, required = schema.get("properties", {}), _names(schema.get("required"))
    rest = _rest(schema, inner)
    if "properties" not in schema and not required:
        return ({} if rest is None or rest is True else {"additionalProperties": rest}), []
    members: SchemaPart = declared if isinstance(declared, dict) else {}
    known: SchemaPart = {name: inner(child, f".{name}") for name, child in members.items()}
    # The converter ignores a required member that is not declared, and then no call could fit.
    known |= {name: any_value() for name in required if name not in members}
    asked: SchemaPart = {"properties": known, **({"required": [*required]} if required else {})}
    if rest is None and "properties" not in schema:
        rest = True
    if rest is None:
        return asked, []
    if rest is not False and not all(map(_EXCLUDABLE.fullmatch, known)):
        return asked, ["additionalProperties"]
    return {**asked, "additionalProperties": rest}, []


def _rest(schema: SchemaPart, inner: Inner) -> Json:
    """The rule for undeclared members; None: left to the converter, which refuses them."""
    given = schema.get("additionalProperties")
    if schema.get("patternProperties"):
        return True
    if isinstance(given, dict):
        return inner(given, ".*")
    further = any(_speaks_of_members(schema[rule]) for rule in _CONDITIONAL if rule in schema)
    return True if given is None and further else given


def _speaks_of_members(rule: Json) -> bool:
    match rule:
        case dict():
            return bool({"properties", "$ref"} & rule.keys()) or any(map(_speaks_of_members, rule.values()))
        case list():
            return any(map(_speaks_of_members, rule))
        case _:
            return False


def _names(names: Json) -> list[str]:
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def array_rules(schema: SchemaPart, inner: Inner) -> Supported:
    """The items, and how many of them."""
    items = schema.get("items")
    leading = items if isinstance(items, list) else schema.get("prefixItems")
    if isinstance(leading, list):
        return _of_tuple(schema, leading, inner)
    asked, dropped = length_rules(schema, "minItems", "maxItems")
    if isinstance(items, dict):
        asked["items"] = inner(items, "[]")
    elif asked:
        asked["items"] = any_value()
    return asked, [*dropped, "items"] if items is False else dropped


def _of_tuple(schema: SchemaPart, leading: list[Json], inner: Inner) -> Supported:
    """A tuple of fixed length, which the converter supports only if no item may be missing or added."""
    length: Json = len(leading)
    if leading and schema.get("minItems") == length == schema.get("maxItems"):
        places: list[Json] = [inner(place, f"[{i}]") for i, place in enumerate(leading)]
        return {"prefixItems": places, "minItems": length, "maxItems": length}, []
    return {}, ["prefixItems"]
