"""Schemas reduced to what a server's grammar or strict mode supports, without excluding any value that they allow."""

import re
from collections.abc import Callable, Iterator
from typing import Literal, assert_never

import msgspec
from msgspec import Raw, Struct

from stages._later import LazyPattern
from stages.schema.value import (
    MAX_BYTES,
    Json,
    at_pointer,
    is_pointer,
    json_type,
    members_of,
    names_in,
    optional_members,
    types_of,
)

# Patterns for llama.cpp's grammars: from an ECMA regular expression to a simple equivalent one.
#
# llama.cpp (common/json-schema-to-grammar.cpp) copies classes and quantifiers into its own grammar language and writes
# text into JSON unescaped. So only constructs that mean the same there are passed on: ASCII text without quotes and
# backslashes, positive classes, groups, alternatives in groups, and small repetitions.

_MOST_REPEATS = 100
"""Maximum copies that a repetition expands to, because the grammar's size and time grow with them."""

_SETS = {"d": "0-9", "w": "A-Za-z0-9_"}
_MEMBER = LazyPattern(r"\\(?P<set>[dw])|\\(?P<escaped>.)|(?P<range>[A-Za-z0-9]-[A-Za-z0-9])|(?P<plain>.)")
_TOKEN = LazyPattern(
    r"""(?P<open>\((?:\?:)?(?![?*+{)|]))
    |   (?P<close>(?<![(|])\))
    |   (?P<either>(?<![(|])\|(?![)|?*+{]))
    |   (?P<many>(?<![\^(|*+?}])(?:[*+?]|\{(?P<low>\d{1,4})(?:,(?P<high>\d{1,4}))?\})(?![?+]))
    |   (?P<set>\\[dw])
    |   (?P<escaped>\\[.*+?(){}|$/-])
    |   \[(?P<members>-?(?:[A-Za-z0-9]-[A-Za-z0-9](?!-[^\]])|[A-Za-z0-9 _.,:;@#%&=!~<>/'`*+?(){}|$]
                        |\\[dw./$*+?(){}|-])+-?)\]
    |   (?P<text>[A-Za-z0-9 _,:;@\#%&=!~<>/'`-])""",
    re.VERBOSE,
)


def plain_pattern(pattern: str) -> str | None:
    """An equivalent pattern, from `^` to `$`, that llama.cpp supports; None if there is none."""
    if not (pattern.startswith("^") and pattern.endswith("$") and len(pattern) > 2):
        return None
    written = ["^"]
    depth, at, end = 0, 1, len(pattern) - 1
    while at < end:
        token = _TOKEN.compiled.match(pattern, at, end)
        text = token and _written(token, depth)
        if token is None or text is None:
            return None
        depth += bool(token["open"]) - bool(token["close"])
        written.append(text)
        at = token.end()
    return "".join([*written, "$"]) if depth == 0 else None


def _written(token: re.Match[str], depth: int) -> str | None:
    """The token in a form that llama.cpp reads correctly; None if there is none."""
    if token["open"]:
        return "("
    if token["set"]:
        return f"[{_SETS[token['set'][1]]}]"
    if token["escaped"]:
        # A class of one character: llama.cpp would join an escaped character with the text before it, and repeat both.
        return f"[{token['escaped'][1]}]"
    if token["members"]:
        # A class of the same characters without escapes, the hyphen last, where it means itself.
        members = token["members"]
        found = [*_MEMBER.compiled.finditer(members)]
        if any(m["range"] and m["range"][0] > m["range"][2] for m in found):
            return None
        plainly = [_SETS[m["set"]] if m["set"] else m["range"] or m["escaped"] or m["plain"] for m in found]
        hyphen = "-" if "-" in plainly else ""
        return f"[{''.join(text for text in plainly if text != '-')}{hyphen}]"
    if token["low"] and not int(token["low"]) <= int(token["high"] or token["low"]) <= _MOST_REPEATS:
        return None
    return None if (token["either"] or token["close"]) and depth == 0 else token[0]


# The rules of strings, numbers and lengths that llama.cpp's converter supports.

SchemaPart = dict[str, Json]
Supported = tuple[SchemaPart, list[str]]
"""The supported rules, and the keywords of those left out."""

_FORMATS = frozenset({"date", "time", "date-time", "uuid"})

_EXACT = 2**53
"""Beyond this, the converter's arithmetic with bounds is unreliable."""


def _string_rules(schema: SchemaPart, *, typed: bool) -> Supported:
    """The rules of a string: one of pattern, format and length, because the converter uses only the first it finds."""
    pattern, name = schema.get("pattern"), schema.get("format")
    asked: SchemaPart = {}
    if isinstance(pattern, str) and (plainly := plain_pattern(pattern)) is not None:
        asked = {"pattern": plainly}
    elif isinstance(name, str) and name in _FORMATS:
        asked = {"format": name}
    elif typed:
        asked, _ = _length_rules(schema, "minLength", "maxLength")
    given = {"pattern", "format", "minLength", "maxLength"} & schema.keys()
    return asked, sorted(given - asked.keys())


def _length_rules(schema: SchemaPart, low: str, high: str) -> Supported:
    """The limits of a length, unless they make the grammar too large or exclude every value."""
    given = [limit for limit in (low, high) if limit in schema]
    whole = {limit: n for limit in given if (n := _whole(schema[limit])) is not None and 0 <= n <= _MOST_REPEATS}
    asked: SchemaPart = {} if whole.get(low, 0) > whole.get(high, _MOST_REPEATS) else {**whole}
    return asked, [limit for limit in given if limit not in asked]


def _number_rules(schema: SchemaPart, *, integers: bool) -> Supported:
    """The bounds of a number. Those of an integer become grammar, so they must be integers and allow a value."""
    given = {name: schema[name] for name in _LOWER + _UPPER if name in schema}
    if not integers:
        numbers: SchemaPart = {name: bound for name, bound in given.items() if not isinstance(bound, bool)}
        return numbers, [name for name in given if name not in numbers]
    whole = {name: n for name, bound in given.items() if (n := _whole(bound)) is not None and abs(n) <= _EXACT}
    lowest = max((whole[name] + n for n, name in enumerate(_LOWER) if name in whole), default=-_EXACT)
    highest = min((whole[name] - n for n, name in enumerate(_UPPER) if name in whole), default=_EXACT)
    asked: SchemaPart = {**whole} if lowest <= highest else {}
    return asked, [name for name in given if name not in asked]


_LOWER = ("minimum", "exclusiveMinimum")
_UPPER = ("maximum", "exclusiveMaximum")


def _whole(limit: Json) -> int | None:
    """The limit as an integer; None if it is not one (draft 4 has `exclusiveMinimum: true`)."""
    match limit:
        case bool():
            return None
        case int():
            return limit
        case float() if limit.is_integer():
            return int(limit)
        case _:
            return None


# The rules of objects and arrays that llama.cpp's converter supports.

Inner = Callable[[Json, str], SchemaPart]
"""Projects an inner part, given the step to it (`.name`, `[]`)."""

_CONDITIONAL = ("allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies")
"""Rules that may mention members that the object does not declare."""


def _any_value() -> SchemaPart:
    """A part that accepts every value; an empty schema would be an object to the converter."""
    return {"type": ["object", "array", "string", "number", "boolean", "null"]}


_EXCLUDABLE = LazyPattern(r"[A-Za-z0-9_./~ ]+")
"""Names that the converter can exclude from undeclared members: it copies their bytes into character classes."""


def _object_rules(schema: SchemaPart, inner: Inner) -> Supported:
    """The declared or required members, and the rule for others."""
    members, required = members_of(schema), names_in(schema.get("required"))
    rest = _rest(schema, inner)
    if "properties" not in schema and not required:
        return ({} if rest is None or rest is True else {"additionalProperties": rest}), []
    known: SchemaPart = {name: inner(child, f".{name}") for name, child in members.items()}
    # The converter ignores a required member that is not declared, and then no call could fit.
    known |= {name: _any_value() for name in required if name not in members}
    asked: SchemaPart = {"properties": known, **({"required": [*required]} if required else {})}
    if rest is None and "properties" not in schema:
        rest = True
    if rest is None:
        return asked, []
    if rest is not False and not all(map(_EXCLUDABLE.compiled.fullmatch, known)):
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


def _array_rules(schema: SchemaPart, inner: Inner) -> Supported:
    """The items, and how many of them."""
    items = schema.get("items")
    leading = items if isinstance(items, list) else schema.get("prefixItems")
    if isinstance(leading, list):
        # The converter supports tuples only with a fixed length.
        length: Json = len(leading)
        if leading and schema.get("minItems") == length == schema.get("maxItems"):
            places: list[Json] = [inner(place, f"[{i}]") for i, place in enumerate(leading)]
            return {"prefixItems": places, "minItems": length, "maxItems": length}, []
        return {}, ["prefixItems"]
    asked, dropped = _length_rules(schema, "minItems", "maxItems")
    if isinstance(items, dict):
        asked["items"] = inner(items, "[]")
    elif asked:
        asked["items"] = _any_value()
    return asked, [*dropped, "items"] if items is False else dropped


# Definitions that refer to themselves before any value is read (left recursion): no grammar can follow them.


def self_referring(definitions: dict[str, Json]) -> list[str]:
    """The definitions that close a cycle of left recursion: replacing them leaves none. Linear in the references."""
    found, done = set[str](), set[str]()
    for start, part in definitions.items():
        # The definitions from the start to the one looked at, each with the references that are not followed yet.
        path = {} if start in done else {start: _leads(part)}
        while path:
            name, left = next(reversed(path.items()))
            for further in left:
                if further in path:
                    found.add(further)
                elif further in definitions and further not in done:
                    path[further] = _leads(definitions[further])
                    break
            else:
                done.add(name)
                del path[name]
    return [name for name in definitions if name in found]


def _leads(part: Json) -> Iterator[str]:
    """The definitions that the part refers to directly, or in alternatives."""
    if isinstance(part, dict):
        target, branches = part.get("$ref"), part.get("anyOf")
        if isinstance(target, str):
            yield target.removeprefix("#/$defs/")
        for branch in branches if isinstance(branches, list) else ():
            yield from _leads(branch)


# Optional members as required but nullable ones, so that a constrained model decides about each.

MOST_OPTIONAL = 8
"""Maximum number of optional members to make required; with more, generating the nulls takes longer than it helps."""


def written_or_null(schema: dict[str, Json]) -> dict[str, Json]:
    """The schema with all members required, where optional ones may be null, which `coerce` removes again.

    A member that may already be null and has another default stays optional: its null would not mean its default.
    """
    members, optional = members_of(schema), optional_members(schema)
    if not 0 < len(optional) <= MOST_OPTIONAL:
        return schema
    nullable = {name for name in optional if _may_be_null(members[name])}
    open_ = {name for name in nullable if _default(members[name]) is not None}
    parts: dict[str, Json] = {
        name: {"anyOf": [part, {"type": "null"}]} if name in optional - nullable else part
        for name, part in members.items()
    }
    return {**schema, "properties": parts, "required": [name for name in members if name not in open_]}


def _may_be_null(part: Json) -> bool:
    if not isinstance(part, dict):
        return part is not False
    listed, branches, named = part.get("enum"), part.get("anyOf"), part.get("type")
    if isinstance(branches, list):
        return any(map(_may_be_null, branches))
    if isinstance(listed, list):
        return None in listed
    if not named:
        return not part.keys() & {"const", "$ref"}
    return named == "null" or (isinstance(named, list) and "null" in named)


def _default(part: Json) -> Json:
    return part.get("default") if isinstance(part, dict) else None


# Project a schema to the subset of OpenAI's strict mode: closed objects, every member required.
#
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. Optional members become required ones
# that may be null; `coerce` removes such a null again. This projection starts from the one for llama.cpp.

_DEEPEST = 8
"""Maximum depth of objects: the API's limit is 10, and the arguments are inside two (`tool_schemas.branch`)."""

_MOST_MEMBERS = 5000
_MOST_VALUES = 1000
_MOST_TEXT = 120_000
"""Maximum characters of names and listed values."""

_FORBIDDEN = ("default", "minLength", "maxLength")
"""Keywords that llama.cpp supports and the strict subset does not. Dropping `default` has no effect."""


class NotStrict(ValueError):  # noqa: N818 - it is a verdict
    """The strict subset has no schema that accepts the same values; the text says why."""


class _Count(Struct):
    """Counts for the limits of strict mode."""

    members: int = 0
    values: int = 0
    text: int = 0


def strict(schema: SchemaPart, before: tuple[str, ...]) -> tuple[SchemaPart, tuple[str, ...]]:
    """The schema in the strict subset, and the rules that it no longer has. Raises NotStrict if there is none.

    `before` are the rules that the projection for llama.cpp dropped.
    """
    if opened := [what for what in before if what.startswith("additionalProperties")]:
        raise NotStrict(f"further members may stand beside those declared: {opened[0]}")
    count, dropped = _Count(), list[str]()
    definitions = schema.get("$defs")
    named = definitions.items() if isinstance(definitions, dict) else ()
    whole = _strict_part({key: value for key, value in schema.items() if key != "$defs"}, "", 0, count, dropped)
    defined: SchemaPart = {name: _strict_part(part, f".{name}", 0, count, dropped) for name, part in named}
    if whole.get("type") != "object":
        raise NotStrict("the whole is not an object with declared members")
    if count.members > _MOST_MEMBERS or count.values > _MOST_VALUES or count.text > _MOST_TEXT:
        raise NotStrict(f"it has {count.members} members and {count.values} listed values, {count.text} characters")
    return ({**whole, "$defs": defined} if defined else whole), tuple(dict.fromkeys(dropped))


def _strict_part(schema: Json, path: str, depth: int, count: _Count, dropped: list[str]) -> SchemaPart:
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
        return {**notes, **_strict_list([schema["const"]] if "const" in schema else schema["enum"], path, count)}
    if "anyOf" in schema:
        branches = schema["anyOf"]
        parts = branches if isinstance(branches, list) else []
        return {**notes, "anyOf": [_strict_part(branch, path, depth, count, dropped) for branch in parts]}
    return {**notes, **_strict_type(schema, path, depth, count, dropped)}


def _strict_list(values: Json, path: str, count: _Count) -> SchemaPart:
    listed = values if isinstance(values, list) else []
    if any(isinstance(value, dict | list) for value in listed):
        raise NotStrict(f"an object or a list is among the values at {_named(path)}")
    count.values += len(listed)
    count.text += sum(len(value) for value in listed if isinstance(value, str))
    types = sorted({json_type(value) for value in listed})
    given: Json = types[0] if len(types) == 1 else [*types]
    return {"type": given, "enum": listed}


def _strict_type(schema: SchemaPart, path: str, depth: int, count: _Count, dropped: list[str]) -> SchemaPart:
    types = {*types_of(schema)}
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
    always = names_in(schema.get("required"))
    count.members += len(declared)
    count.text += sum(map(len, declared))
    members: SchemaPart = {
        name: _member(_strict_part(child, f"{path}.{name}", depth + 1, count, dropped), always=name in always)
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
        return {"anyOf": [_strict_part(place, f"{path}[{i}]", depth, count, dropped) for i, place in enumerate(places)]}
    return _strict_part(schema.get("items"), f"{path}[]", depth, count, dropped)


def _named(path: str) -> str:
    return f'"{path.removeprefix(".")}"' if path else "the top"


# The projection of a schema to what a backend's grammar supports; the rest is checked after the reply.
#
# OpenAI's strict mode is above; this is for llama.cpp. Its converter (common/json-schema-to-grammar.cpp) refuses some
# schemas and reads others more narrowly than JSON Schema does: an object is closed unless it says otherwise, `allOf`
# makes every member required, an empty schema is an object, and keywords beside `anyOf` or `enum` are ignored.

SchemaTarget = Literal["llama.cpp", "openai-strict"]
"""The supported targets: llama.cpp's grammar (also llama-server, llamafile, Ollama), and OpenAI's strict mode."""

_KEPT = ("description", "default")
_NOTES = frozenset({*_KEPT, "title", "examples", "$comment", "$id", "$schema", "$defs", "definitions"})
"""Keywords that require nothing."""

_UNKNOWN = frozenset(
    {"allOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "propertyNames"}
    | {"uniqueItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties", "multipleOf"}
    | {"unevaluatedItems", "unevaluatedProperties", "patternProperties", "$dynamicRef"}
)
"""Rules that the converter ignores, or makes more of: a member that it requires because one of `allOf` names it."""


class Projection(Struct, frozen=True, kw_only=True):
    """A schema that the target supports and that accepts every value that the original accepts.

    `dropped` names the rules that it no longer has (`pattern at "sku"`), in the order of the schema. `refused` is the
    reason if the target supports no such schema; `schema` is then the one for llama.cpp. In strict mode, it accepts
    null for an optional member, which `coerce` removes again.
    """

    schema: Raw
    dropped: tuple[str, ...] = ()
    refused: str = ""


def project(schema: bytes | Raw, target: SchemaTarget) -> Projection:
    """The schema as far as the target supports it, with all definitions under its own `$defs`.

    It must be a schema that `checker` accepts.
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
    """The state of the walk: definitions by name, names by pointer, dropped rules, and definitions left to project."""

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
        work.definitions[name] = _any_value()
        work.drop("a reference that leads only to itself", name)
    whole = {**projected, "$defs": work.definitions} if work.definitions else projected
    return whole, tuple(dict.fromkeys(work.dropped))


def _part(schema: Json, path: str, work: _Work) -> SchemaPart:
    if not isinstance(schema, dict):
        if schema is False:
            work.drop("false", path)
        return _any_value()
    notes: SchemaPart = {note: schema[note] for note in _KEPT if note in schema}
    conjuncts = schema.get("allOf")
    if isinstance(conjuncts, list) and len(conjuncts) == 1 and schema.keys() <= _NOTES | {"allOf"}:
        # Pydantic 1 and others write a reference in this way, so that a description may stand beside it.
        return {**notes, **_part(conjuncts[0], path, work)}
    for rule in sorted(schema.keys() & _UNKNOWN):
        work.drop(rule, path)
    return {**notes, **_rules(schema, path, work)}


def _rules(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    if "$ref" in schema:
        return _reference(schema, path, work)
    if "const" in schema or schema.get("enum"):
        return _listed(schema, path, work)
    if "properties" not in schema and ("anyOf" in schema or "oneOf" in schema):
        return _alternatives(schema, path, work)
    return _typed(schema, path, work)


def _listed(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    keyword = "const" if "const" in schema else "enum"
    for rule in sorted(schema.keys() - _NOTES - _UNKNOWN - {keyword, "type"}):
        work.drop(rule, path)
    return {keyword: schema[keyword]}


def _reference(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    pointer = schema["$ref"]
    if not is_pointer(pointer):
        work.drop("$ref", path)
        return _any_value()
    for rule in sorted(schema.keys() - _NOTES - _UNKNOWN - {"$ref"}):
        work.drop(rule, path)
    if pointer not in work.names:
        # Characters that a converter may not read in a reference are left out of the name.
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", pointer.rsplit("/", 1)[-1]).strip("-") or "root"
        free = name
        while free in work.definitions:
            number = work.numbers[name] = work.numbers.get(name, 1) + 1
            free = f"{name}-{number}"
        work.names[pointer] = free
        work.definitions[free] = {}
        # Projected later: it may refer to itself, or begin a chain of thousands.
        work.todo.append((free, at_pointer(work.root, pointer)))
    return {"$ref": f"#/$defs/{work.names[pointer]}"}


def _alternatives(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    keyword = "anyOf" if "anyOf" in schema else "oneOf"
    branches = schema[keyword]
    # Rules beside alternatives are ignored; the type is copied into alternatives without one.
    for rule in sorted(schema.keys() - _NOTES - _UNKNOWN - {"type", keyword}):
        work.drop(rule, path)
    given: SchemaPart = {"type": schema["type"]} if "type" in schema else {}
    untyped = {"type", "$ref", "const", "enum", "allOf", "anyOf", "oneOf"}
    told = [
        {**given, **branch} if isinstance(branch, dict) and not untyped & branch.keys() else branch
        for branch in (branches if isinstance(branches, list) else [])
        if branch is not False
    ]
    return {"anyOf": [_part(branch, path, work) for branch in told]} if told else _any_value()


def _typed(schema: SchemaPart, path: str, work: _Work) -> SchemaPart:
    types = {*types_of(schema)}
    asked: SchemaPart = {"type": schema["type"]} if types else {}
    for rule in sorted({"anyOf", "oneOf"} & schema.keys()):
        work.drop(rule, path)
    for rules, dropped in _of_types(schema, types, lambda child, step: _part(child, path + step, work)):
        asked |= rules
        for rule in dropped:
            work.drop(rule, path)
    return asked or _any_value()


def _of_types(schema: SchemaPart, types: set[str], inner: Inner) -> Iterator[Supported]:
    """The rules for each type that the value may have; if no type is named, for those that a rule implies."""
    if not types or "object" in types:
        yield _object_rules(schema, inner)
    if not types or "array" in types:
        yield _array_rules(schema, inner)
    if not types or "string" in types:
        yield _string_rules(schema, typed=bool(types))
    if types & {"integer", "number"}:
        yield _number_rules(schema, integers="integer" in types)
