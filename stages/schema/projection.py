"""Project a schema to what a backend's grammar supports; the rest is checked after decoding.

OpenAI's strict mode is in `strict_mode`; everything below is about llama.cpp. The rules are those of its converter
(common/json-schema-to-grammar.cpp), which refuses some schemas and reads others more narrowly than JSON Schema does: an
object is closed unless it says otherwise, `allOf` makes every member required, an empty schema is an object, and
keywords beside `anyOf` or `enum` are ignored.
"""

import re
from collections.abc import Iterator
from typing import Literal, assert_never

import msgspec
from msgspec import Raw, Struct

from stages.schema.bounds import SchemaPart, Supported, number_rules, string_rules
from stages.schema.containers import Inner, any_value, array_rules, object_rules
from stages.schema.cycles import self_referring
from stages.schema.merge import NOTES, merge_all_of
from stages.schema.strict_mode import NotStrict, strict
from stages.schema.value import MAX_BYTES, Json, at_pointer

Target = Literal["llama.cpp", "openai-strict"]
"""The supported targets: llama.cpp's grammar (also llama-server, llamafile, Ollama), and OpenAI's strict mode."""

_KEPT = ("description", "default")
_UNKNOWN = frozenset(
    {"not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "propertyNames"}
    | {"uniqueItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties", "multipleOf"}
    | {"unevaluatedItems", "unevaluatedProperties", "patternProperties", "$dynamicRef"}
)
"""Rules that the converter ignores."""

_MOST_NAMES = 200
"""Maximum number of definitions; an `allOf` around itself could otherwise make larger ones for ever."""


class Projection(Struct, frozen=True, kw_only=True):
    """A schema that the backend supports and that accepts every value that the original accepts.

    `dropped` names the rules that it no longer has (`pattern at "sku"`), in the order of the schema. `refused` says why
    the target supports no such schema; the schema is then the one for llama.cpp. In the strict mode it accepts null in
    place of an optional member (see `coerce`).
    """

    schema: Raw
    dropped: tuple[str, ...] = ()
    refused: str = ""


def project(schema: bytes | Raw, target: Target) -> Projection:
    """The schema as far as the target's grammar supports it, with all definitions under its own `$defs`.

    The schema must be one that `checker` takes.
    """
    if len(bytes(schema)) > MAX_BYTES:
        return Projection(schema=Raw(b'{"type":"object"}'), dropped=("all",), refused="it is too large")
    match target:
        case "llama.cpp":
            part, dropped = _for_llama(msgspec.json.decode(schema))
            return Projection(schema=Raw(msgspec.json.encode(part)), dropped=dropped)
        case "openai-strict":
            return _for_strict(*_for_llama(msgspec.json.decode(schema)))
        case _:
            assert_never(target)


def _for_strict(part: SchemaPart, dropped: tuple[str, ...]) -> Projection:
    try:
        closed, more = strict(part, dropped)
    except NotStrict as reason:
        return Projection(schema=Raw(msgspec.json.encode(part)), dropped=dropped, refused=str(reason))
    return Projection(schema=Raw(msgspec.json.encode(closed)), dropped=dropped + more)


class _Work(Struct):
    """What the walk collects: definitions by name, names by pointer, dropped rules, and definitions to be projected."""

    root: Json
    definitions: SchemaPart
    names: dict[str, str]
    dropped: list[str]
    todo: list[tuple[str, Json]]
    numbers: dict[str, int]

    def drop(self, what: str, path: str) -> None:
        self.dropped.append(f'{what} at "{path.removeprefix(".")}"' if path else what)


def _for_llama(root: Json) -> tuple[SchemaPart, tuple[str, ...]]:
    work = _Work(root, {}, {}, [], [], {})
    projected = _part(root, "", work)
    for name, part in work.todo:
        work.definitions[name] = _part(part, f".{name}", work)
    for name in self_referring(work.definitions):
        work.definitions[name] = any_value()
        work.drop("a reference that leads only to itself", name)
    whole = {**projected, "$defs": work.definitions} if work.definitions else projected
    return whole, tuple(dict.fromkeys(work.dropped))


def _part(schema: Json, path: str, work: _Work) -> SchemaPart:
    if not isinstance(schema, dict):
        if schema is False:
            work.drop("false", path)
        return any_value()
    for rule in sorted(schema.keys() & _UNKNOWN):
        work.drop(rule, path)
    notes: SchemaPart = {note: schema[note] for note in _KEPT if note in schema}
    return {**notes, **_rules(schema, path, work)}


def _rules(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    if "$ref" in schema:
        return _reference(schema, path, work)
    if "const" in schema or schema.get("enum"):
        return _listed(schema, path, work)
    if "allOf" in schema:
        return _conjunction(schema, path, work)
    if "properties" not in schema and ("anyOf" in schema or "oneOf" in schema):
        return _alternatives(schema, path, work)
    return _typed(schema, path, work)


def _listed(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    keyword = "const" if "const" in schema else "enum"
    for rule in sorted(schema.keys() - NOTES - _UNKNOWN - {keyword, "type"}):
        work.drop(rule, path)
    return {keyword: schema[keyword]}


def _reference(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    pointer = schema["$ref"]
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        work.drop("$ref", path)
        return any_value()
    for rule in sorted(schema.keys() - NOTES - _UNKNOWN - {"$ref"}):
        work.drop(rule, path)
    if pointer not in work.names:
        # Characters that a converter may not read in a reference are left out of the name.
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", pointer.rsplit("/", 1)[-1]).strip("-") or "root"
        _define(pointer, name, at_pointer(work.root, pointer), work)
    return {"$ref": f"#/$defs/{work.names[pointer]}"}


def _conjunction(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    """`allOf` as one part; as a definition if it contains references, which may lead back to it."""
    text, conjuncts = msgspec.json.encode(schema).decode(), schema["allOf"]
    if isinstance(conjuncts, list) and len(conjuncts) == 1 and not schema.keys() - NOTES - _UNKNOWN - {"allOf"}:
        return _part(conjuncts[0], path, work)
    if text not in work.names:
        if len(work.names) >= _MOST_NAMES:
            work.drop("allOf", path)
            return any_value()
        one, left_out = merge_all_of(schema, work.root)
        for rule in left_out:
            work.drop(rule, path)
        if '"$ref"' not in text:
            return _part(one, path, work)
        _define(text, "all", one, work)
    return {"$ref": f"#/$defs/{work.names[text]}"}


def _define(key: str, name: str, schema: Json, work: _Work) -> None:
    """Make the part a definition. It is projected later, as it may refer to itself, or to the next of thousands."""
    free = name
    while free in work.definitions:
        number = work.numbers[name] = work.numbers.get(name, 1) + 1
        free = f"{name}-{number}"
    work.names[key] = free
    work.definitions[free] = {}
    work.todo.append((free, schema))


def _alternatives(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    keyword = "anyOf" if "anyOf" in schema else "oneOf"
    branches = schema[keyword]
    # Rules beside alternatives are ignored; the type is copied into alternatives without one.
    for rule in sorted(schema.keys() - NOTES - _UNKNOWN - {"type", keyword}):
        work.drop(rule, path)
    given: SchemaPart = {"type": schema["type"]} if "type" in schema else {}
    untyped = {"type", "$ref", "const", "enum", "allOf", "anyOf", "oneOf"}
    told = [
        {**given, **branch} if isinstance(branch, dict) and not untyped & branch.keys() else branch
        for branch in (branches if isinstance(branches, list) else [])
        if branch is not False
    ]
    return {"anyOf": [_part(branch, path, work) for branch in told]} if told else any_value()


def _typed(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    given = schema.get("type")
    types = {name for name in (given if isinstance(given, list) else [given]) if isinstance(name, str)}
    asked: SchemaPart = {"type": given} if types else {}
    for rule in sorted({"anyOf", "oneOf"} & schema.keys()):
        work.drop(rule, path)
    for rules, dropped in _of_types(schema, types, lambda child, step: _part(child, path + step, work)):
        asked |= rules
        for rule in dropped:
            work.drop(rule, path)
    return asked or any_value()


def _of_types(schema: SchemaPart, types: set[str], inner: Inner) -> Iterator[Supported]:
    """The rules for each type that the value may have; if no type is named, for those that a rule implies."""
    if not types or "object" in types:
        yield object_rules(schema, inner)
    if not types or "array" in types:
        yield array_rules(schema, inner)
    if not types or "string" in types:
        yield string_rules(schema, typed=bool(types))
    if types & {"integer", "number"}:
        yield number_rules(schema, integers="integer" in types)
