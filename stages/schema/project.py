"""The projection of a schema to what a backend's grammar can bear; the rest is checked after decoding (D25).

The rules are those of llama.cpp's converter (common/json-schema-to-grammar.cpp), which refuses some schemas and
reads others more narrowly than JSON Schema does: an object is closed unless it says otherwise, `allOf` makes
every member required, an empty schema is an object, and keywords beside `anyOf` or `enum` count for nothing.
"""

import re
from itertools import count
from typing import Literal, assert_never

import msgspec
from msgspec import Raw, Struct

from stages.schema.bounds import of_length, of_number, of_string
from stages.schema.compiled import pointed
from stages.schema.cycles import endless
from stages.schema.merge import NOTES, merged
from stages.schema.value import Json

Target = Literal["llama.cpp"]
"""The grammars that are known: llama.cpp's, and so llama-server's, llamafile's and Ollama's."""

Part = dict[str, Json]

KEPT = ("description", "default")
UNKNOWN = frozenset(
    {"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "propertyNames"}
    | {"uniqueItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties", "multipleOf"}
    | {"unevaluatedItems", "unevaluatedProperties", "patternProperties", "$dynamicRef"}
)
"""Rules that the converter passes over."""

CONDITIONAL = ("anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies")
"""Rules that can speak of further members of an object."""


class Projection(Struct, frozen=True, kw_only=True):
    """A schema that the backend bears and that accepts every value that the original accepts.

    `dropped` names what it does not ask for any more (`pattern at "sku"`), in the order of the schema.
    """

    schema: Raw
    dropped: tuple[str, ...] = ()


def project(schema: bytes | Raw, target: Target) -> Projection:
    """The schema as far as the target's grammar bears it. All that it refers to is under its own `$defs`.

    The schema must be one that `checker` takes.
    """
    match target:
        case "llama.cpp":
            return _for_llama(msgspec.json.decode(schema))
        case _:
            assert_never(target)


class _Work(Struct):
    """What the walk collects: definitions by name, names by pointer, and what was dropped."""

    root: Json
    definitions: Part
    names: dict[str, str]
    dropped: list[str]

    def drop(self, what: str, path: str) -> None:
        self.dropped.append(f'{what} at "{path.removeprefix(".")}"' if path else what)


def _for_llama(root: Json) -> Projection:
    work = _Work(root, {}, {}, [])
    projected = _part(root, "", work)
    for name in endless(work.definitions):
        work.definitions[name] = _anything()
        work.drop("a reference that leads only to itself", name)
    whole = {**projected, "$defs": work.definitions} if work.definitions else projected
    return Projection(schema=Raw(msgspec.json.encode(whole)), dropped=tuple(dict.fromkeys(work.dropped)))


def _anything() -> Part:
    """What accepts every value; an empty schema would be an object to the converter."""
    return {"type": ["object", "array", "string", "number", "boolean", "null"]}


def _part(schema: Json, path: str, work: _Work) -> Part:
    if not isinstance(schema, dict):
        if schema is False:
            work.drop("false", path)
        return _anything()
    for rule in sorted(schema.keys() & UNKNOWN):
        work.drop(rule, path)
    notes: Part = {note: schema[note] for note in KEPT if note in schema}
    return {**notes, **_rules(schema, path, work)}


def _rules(schema: Part, path: str, work: _Work) -> Part:
    if "$ref" in schema:
        return _reference(schema, path, work)
    if "const" in schema or schema.get("enum"):
        return _listed(schema, path, work)
    if "allOf" in schema:
        one, left_out = merged(schema, work.root)
        for rule in left_out:
            work.drop(rule, path)
        return _part(one, path, work)
    if "properties" not in schema and ("anyOf" in schema or "oneOf" in schema):
        return _alternatives(schema, path, work)
    return _typed(schema, path, work)


def _listed(schema: Part, path: str, work: _Work) -> Part:
    keyword = "const" if "const" in schema else "enum"
    for rule in sorted(schema.keys() - NOTES - UNKNOWN - {keyword, "type"}):
        work.drop(rule, path)
    return {keyword: schema[keyword]}


def _reference(schema: Part, path: str, work: _Work) -> Part:
    pointer = schema["$ref"]
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        work.drop("$ref", path)
        return _anything()
    for rule in sorted(schema.keys() - NOTES - UNKNOWN - {"$ref"}):
        work.drop(rule, path)
    if pointer not in work.names:
        name = _fresh(pointer, work.definitions)
        work.names[pointer] = name
        work.definitions[name] = {}
        work.definitions[name] = _part(pointed(work.root, pointer), f".{name}", work)
    return {"$ref": f"#/$defs/{work.names[pointer]}"}


def _fresh(pointer: str, taken: Part) -> str:
    """A name for a definition that every converter can read in a reference."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", pointer.rsplit("/", 1)[-1]).strip("-") or "root"
    return next(free for n in count(1) if (free := f"{name}-{n}" if n > 1 else name) not in taken)


def _alternatives(schema: Part, path: str, work: _Work) -> Part:
    keyword = "anyOf" if "anyOf" in schema else "oneOf"
    branches = schema[keyword]
    # Beside alternatives no other rule counts; the type is told to those that have none.
    for rule in sorted(schema.keys() - NOTES - UNKNOWN - {"type", keyword}):
        work.drop(rule, path)
    given: Part = {"type": schema["type"]} if "type" in schema else {}
    untyped = {"type", "$ref", "const", "enum", "allOf", "anyOf", "oneOf"}
    told = [
        {**given, **branch} if isinstance(branch, dict) and not untyped & branch.keys() else branch
        for branch in (branches if isinstance(branches, list) else [])
        if branch is not False
    ]
    return {"anyOf": [_part(branch, path, work) for branch in told]} if told else _anything()


def _typed(schema: Part, path: str, work: _Work) -> Part:
    given = schema.get("type")
    types = {given} if isinstance(given, str) else set(given) if isinstance(given, list) else set()
    asked: Part = {"type": given} if types else {}
    for rule in sorted({"anyOf", "oneOf"} & schema.keys()):
        work.drop(rule, path)
    if not types or "object" in types:
        asked |= _object(schema, path, work)
    if not types or "array" in types:
        asked |= _array(schema, path, work)
    strings = of_string(schema, typed=bool(types)) if not types or "string" in types else NOTHING
    numbers = of_number(schema, integers="integer" in types) if types & {"integer", "number"} else NOTHING
    for rules, dropped in (strings, numbers):
        asked |= rules
        for rule in dropped:
            work.drop(rule, path)
    return asked or _anything()


NOTHING: tuple[Part, list[str]] = ({}, [])


_EXCLUDABLE = re.compile(r"[A-Za-z0-9_./~ ]+")
"""Names that the converter can tell further members from: it puts their bytes into character classes as they are."""


def _object(schema: Part, path: str, work: _Work) -> Part:
    declared, required = schema.get("properties", {}), _names(schema.get("required"))
    members: Part = declared if isinstance(declared, dict) else {}
    rest = _rest(schema, path, work)
    if "properties" not in schema and not required:
        return {} if rest in (None, True) else {"additionalProperties": rest}
    known: Part = {name: _part(child, f"{path}.{name}", work) for name, child in members.items()}
    # The converter forgets a required member that is not declared, and then no call could ever fit.
    forgotten: Part = {name: _anything() for name in required if name not in members}
    asked: Part = {"properties": {**known, **forgotten}}
    if required:
        asked["required"] = [*required]
    if rest is None and "properties" not in schema:
        rest = True
    if rest is not None and rest is not False and not all(map(_EXCLUDABLE.fullmatch, [*known, *forgotten])):
        work.drop("additionalProperties", path)
        return asked
    return asked if rest is None else {**asked, "additionalProperties": rest}


def _rest(schema: Part, path: str, work: _Work) -> Json:
    """The rule for members that are not declared; None to leave it to the converter, which refuses them."""
    given = schema.get("additionalProperties")
    if schema.get("patternProperties"):
        return True
    if isinstance(given, dict):
        return _part(given, f"{path}.*", work)
    further = any(_speaks_of_members(schema[rule]) for rule in CONDITIONAL if rule in schema)
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


def _array(schema: Part, path: str, work: _Work) -> Part:
    items = schema.get("items")
    leading = items if isinstance(items, list) else schema.get("prefixItems")
    if isinstance(leading, list):
        return _tuple(schema, leading, path, work)
    asked, dropped = of_length(schema, "minItems", "maxItems")
    for rule in dropped:
        work.drop(rule, path)
    if items is False:
        work.drop("items", path)
    if isinstance(items, dict):
        asked["items"] = _part(items, f"{path}[]", work)
    elif asked:
        asked["items"] = _anything()
    return asked


def _tuple(schema: Part, leading: list[Json], path: str, work: _Work) -> Part:
    """A list of fixed places, which the converter bears only where no place may be missing and none be added."""
    length: Json = len(leading)
    if leading and schema.get("minItems") == length == schema.get("maxItems"):
        places: list[Json] = [_part(place, f"{path}[{i}]", work) for i, place in enumerate(leading)]
        return {"prefixItems": places, "minItems": length, "maxItems": length}
    work.drop("prefixItems", path)
    return {}
