"""Project a schema to the subset of OpenAI's strict mode: closed objects, every member required.

https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. An optional member becomes one that may be
null: `coerce` leaves such a null out again. It starts from the projection to llama.cpp.
"""

from collections.abc import Iterator

from msgspec import Struct

from stages.schema.bounds import SchemaPart
from stages.schema.value import Json, kinds

_DEEPEST = 8
"""Maximum depth of objects; the limit is 10, and two are around the arguments."""

_MOST_MEMBERS = 5000
_MOST_VALUES = 1000
_MOST_TEXT = 120_000
"""Maximum characters of names and listed values."""

_FORBIDDEN = ("default", "minLength", "maxLength")
"""What llama.cpp supports and the strict subset does not; `default` has no effect anyway."""


class NotStrict(ValueError):  # noqa: N818 - it is a verdict
    """The subset has no schema that accepts what this one accepts; the text says why."""


class _Count(Struct):
    """Counts that the limits are about."""

    members: int = 0
    values: int = 0
    text: int = 0


def strict(schema: SchemaPart, before: tuple[str, ...]) -> tuple[SchemaPart, tuple[str, ...]]:
    """The schema in the strict subset, and the rules that it no longer has. NotStrict says why there is none.

    `before` are the rules that the projection to llama.cpp dropped.
    """
    if opened := [what for what in before if what.startswith("additionalProperties")]:
        raise NotStrict(f"further members may stand beside those declared: {opened[0]}")
    count, dropped = _Count(), list[str]()
    definitions = schema.get("$defs")
    named = definitions.items() if isinstance(definitions, dict) else ()
    whole = _part({key: value for key, value in schema.items() if key != "$defs"}, "", 0, count, dropped)
    defined: SchemaPart = {name: _part(part, f".{name}", 0, count, dropped) for name, part in named}
    if whole.get("type") != "object":
        raise NotStrict("the whole is no object with declared members")
    if count.members > _MOST_MEMBERS or count.values > _MOST_VALUES or count.text > _MOST_TEXT:
        raise NotStrict(f"it has {count.members} members and {count.values} listed values, {count.text} characters")
    return ({**whole, "$defs": defined} if defined else whole), tuple(dict.fromkeys(dropped))


def _part(schema: Json, path: str, depth: int, count: _Count, dropped: list[str]) -> SchemaPart:
    if not isinstance(schema, dict):
        raise NotStrict(f"anything may stand at {_named(path)}")
    if depth > _DEEPEST:
        raise NotStrict(f"it is nested deeper than {_DEEPEST} objects at {_named(path)}")
    dropped += [f"{rule} at {_named(path)}" for rule in _FORBIDDEN[1:] if rule in schema]
    notes: SchemaPart = {"description": schema["description"]} if "description" in schema else {}
    if "$ref" in schema:
        # The subset allows nothing beside a reference.
        return {"anyOf": [{"$ref": schema["$ref"]}], **notes} if notes else {"$ref": schema["$ref"]}
    if "const" in schema or "enum" in schema:
        return {**notes, **_listed([schema["const"]] if "const" in schema else schema["enum"], path, count)}
    if "anyOf" in schema:
        branches = schema["anyOf"]
        parts = branches if isinstance(branches, list) else []
        return {**notes, "anyOf": [_part(branch, path, depth, count, dropped) for branch in parts]}
    return {**notes, **_typed(schema, path, depth, count, dropped)}


def _listed(values: Json, path: str, count: _Count) -> SchemaPart:
    listed = values if isinstance(values, list) else []
    if any(isinstance(value, dict | list) for value in listed):
        raise NotStrict(f"an object or a list is among the values at {_named(path)}")
    count.values += len(listed)
    count.text += sum(len(value) for value in listed if isinstance(value, str))
    types = sorted({_scalar(value) for value in listed})
    given: Json = types[0] if len(types) == 1 else [*types]
    return {"type": given, "enum": listed}


def _scalar(value: Json) -> str:
    return "integer" if isinstance(value, int) and not isinstance(value, bool) else min(kinds(value) - {"integer"})


def _typed(schema: SchemaPart, path: str, depth: int, count: _Count, dropped: list[str]) -> SchemaPart:
    given = schema.get("type")
    types = {name for name in (given if isinstance(given, list) else [given]) if isinstance(name, str)}
    # If no type is named, a rule implies it; if none does, anything is allowed.
    types = types or set(_told(schema))
    if not types:
        raise NotStrict(f"anything may stand at {_named(path)}")
    left: SchemaPart = {key: schema[key] for key in schema if key not in (*_FORBIDDEN, "description", "type")}
    named: list[Json] = [*sorted(types)]
    left["type"] = named[0] if len(named) == 1 else named
    if "object" in types:
        left |= _object(schema, path, depth, count, dropped)
    if "array" in types:
        left |= {"items": _items(schema, path, depth, count, dropped)}
        left.pop("prefixItems", None)
    return left


def _told(schema: SchemaPart) -> Iterator[str]:
    if "properties" in schema:
        yield "object"
    if "items" in schema or "prefixItems" in schema:
        yield "array"
    if "pattern" in schema or "format" in schema:
        yield "string"


def _object(schema: SchemaPart, path: str, depth: int, count: _Count, dropped: list[str]) -> SchemaPart:
    declared = schema.get("properties")
    if schema.get("additionalProperties", False) is not False or not isinstance(declared, dict):
        raise NotStrict(f"members of any name may stand at {_named(path)}")
    required = schema.get("required")
    always = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set[str]()
    count.members += len(declared)
    count.text += sum(map(len, declared))
    members: SchemaPart = {
        name: _member(_part(child, f"{path}.{name}", depth + 1, count, dropped), always=name in always)
        for name, child in declared.items()
    }
    return {"properties": members, "required": [*members], "additionalProperties": False}


def _member(part: SchemaPart, *, always: bool) -> SchemaPart:
    """The part, or null in its place if it is optional."""
    return part if always else {"anyOf": [part, {"type": "null"}]}


def _items(schema: SchemaPart, path: str, depth: int, count: _Count, dropped: list[str]) -> SchemaPart:
    places = schema.get("prefixItems")
    if isinstance(places, list):
        dropped.append(f"prefixItems at {_named(path)}")
        return {"anyOf": [_part(place, f"{path}[{i}]", depth, count, dropped) for i, place in enumerate(places)]}
    return _part(schema.get("items"), f"{path}[]", depth, count, dropped)


def _named(path: str) -> str:
    return f'"{path.removeprefix(".")}"' if path else "the top"
