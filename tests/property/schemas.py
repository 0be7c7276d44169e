"""Hypothesis strategies: JSON Schemas together with values that fit them, and such values spoiled."""

from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from stages.schema.value import Json

Part = dict[str, Json]


class Specimen(NamedTuple):
    schema: Part
    value: Json


NAMES = st.sampled_from(["a", "b", "qty", "x/y", "~", "é"])
PATTERNS = [
    "^[A-Z]{2}-\\d+$",
    "^\\w+$",
    "^(a|bc)?d$",
    "^a|b$",
    "b",
    "^[^a]$",
    "^.+$",
    "^[\\w.-]{1,3}$",
    "^x\\.?$",
    "^(?:ab){2}$",
    "^[+-]?[0-9]$",
]
SCALARS: st.SearchStrategy[Json] = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab1 ", max_size=3) | st.sampled_from(["true", "7", "1.5"])
)


@st.composite
def leaves(draw: st.DrawFn) -> Specimen:
    kind = draw(st.sampled_from(["integer", "number", "string", "pattern", "boolean", "null", "enum", "const", "any"]))
    match kind:
        case "integer":
            value = draw(st.integers(-300, 300))
            low, high = draw(st.integers(-400, value)), draw(st.integers(value, 400))
            bounds: Part = {"minimum": low, "maximum": high, "exclusiveMinimum": low - 0.5, "multipleOf": 1}
            kept = draw(st.sets(st.sampled_from([*bounds])))
            return Specimen({"type": "integer", **{name: bounds[name] for name in sorted(kept)}}, value)
        case "number":
            number = draw(st.floats(-1e6, 1e6))
            return Specimen({"type": "number", "maximum": number}, number)
        case "string":
            text = draw(st.text(max_size=4))
            bounds = {"minLength": len(text), "maxLength": draw(st.integers(len(text), 9999)), "format": "odd"}
            kept = draw(st.sets(st.sampled_from([*bounds])))
            return Specimen({"type": "string", **{name: bounds[name] for name in sorted(kept)}}, text)
        case "pattern":
            pattern = draw(st.sampled_from(PATTERNS))
            text = draw(
                st.from_regex(pattern, fullmatch=True, alphabet=st.characters(min_codepoint=32, max_codepoint=126))
            )
            return Specimen({"type": "string", "pattern": pattern}, text)
        case "enum":
            options = draw(st.lists(SCALARS, min_size=1, max_size=3))
            return Specimen({"enum": options}, draw(st.sampled_from(options)))
        case "const":
            only = draw(SCALARS)
            return Specimen({"const": only}, only)
        case "any":
            return Specimen(draw(st.sampled_from([{}, {"description": "whatever"}])), draw(SCALARS))
        case _:
            value_of: st.SearchStrategy[Json] = st.none() if kind == "null" else st.booleans()
            return Specimen({"type": kind}, draw(value_of))


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Specimen]) -> Specimen:
    one, other = draw(inner), draw(inner)
    form = draw(st.sampled_from(["items", "tuple", "leading", "contains"]))
    match form:
        case "tuple":
            closed: Part = {"prefixItems": [one.schema, other.schema], "items": False, "minItems": 2, "maxItems": 2}
            return Specimen({"type": "array", **closed}, [one.value, other.value])
        case "leading":
            return Specimen(
                {"type": "array", "prefixItems": [one.schema], "items": other.schema}, [one.value, other.value]
            )
        case "contains":
            return Specimen({"type": "array", "contains": one.schema, "minItems": 1}, [one.value])
        case _:
            count = draw(st.integers(0, 3))
            bounds = draw(st.sampled_from([{}, {"minItems": count}, {"maxItems": max(1, count) * 1000}]))
            return Specimen({"type": ["array", "null"], "items": one.schema, **bounds}, [one.value] * count)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Specimen]) -> Specimen:
    members = draw(st.dictionaries(NAMES, inner, max_size=3))
    given = draw(st.sets(st.sampled_from([*members]))) if members else set[str]()
    required: list[Json] = [name for name in members if name in given and draw(st.booleans())]
    schema: Part = {"type": "object", "properties": {name: each.schema for name, each in members.items()}}
    value: Part = {name: each.value for name, each in members.items() if name in given}
    if required:
        schema["required"] = required
    match draw(st.sampled_from(["closed", "open", "map", "patterns", "variants", "required", "dependent"])):
        case "closed":
            schema["additionalProperties"] = False
        case "map":
            further = draw(inner)
            schema["additionalProperties"] = further.schema
            value["further"] = further.value
        case "patterns":
            further = draw(inner)
            schema |= {"patternProperties": {"^x-": further.schema}, "additionalProperties": False}
            value["x-further"] = further.value
        case "variants":
            further = draw(inner)
            schema["anyOf"] = [{"properties": {"kind": further.schema}, "required": ["kind"]}, {"required": ["none"]}]
            value["kind"] = further.value
        case "required":
            schema["required"] = [*required, "undeclared"]
            value["undeclared"] = draw(SCALARS)
        case "dependent":
            schema |= {"if": {"required": ["a"]}, "then": {"properties": {"zz": {"type": "integer"}}}}
        case _:
            pass
    return Specimen(schema, value)


@st.composite
def combined(draw: st.DrawFn, inner: st.SearchStrategy[Specimen]) -> Specimen:
    one, other = draw(inner), draw(inner)
    branches: list[Json] = draw(st.permutations([one.schema, other.schema]))
    match draw(st.sampled_from(["anyOf", "allOf", "split", "not"])):
        case "anyOf":
            return Specimen({"anyOf": branches}, one.value)
        case "allOf":
            return Specimen({"allOf": [one.schema, {"description": "the same"}]}, one.value)
        case "split":
            split: Part = {
                "allOf": [{"type": "object", "properties": {"a": one.schema}}, {"properties": {"b": other.schema}}]
            }
            return Specimen(split, {"a": one.value, "b": other.value})
        case _:
            return Specimen({**one.schema, "not": {"const": "never this"}}, one.value)


PARTS = st.recursive(leaves(), lambda inner: arrays(inner) | objects(inner) | combined(inner), max_leaves=6)


@st.composite
def specimens(draw: st.DrawFn) -> Specimen:
    """A tool's parameters, some of them behind references, and arguments that fit."""
    members = draw(st.dictionaries(NAMES, PARTS, min_size=1, max_size=3))
    properties: Part = {}
    definitions: Part = {}
    for name, each in members.items():
        if draw(st.booleans()):
            label = f"D{len(definitions)}/x"
            definitions[label] = each.schema
            properties[name] = {"$ref": f"#/$defs/{label.replace('/', '~1')}", "description": name}
        else:
            properties[name] = each.schema
    schema: Part = {"type": "object", "properties": properties, "required": [draw(st.sampled_from([*members]))]}
    if definitions:
        schema["$defs"] = definitions
    return Specimen(schema, {name: each.value for name, each in members.items()})


def spoilt(value: Json) -> st.SearchStrategy[Json]:
    """The value, and the same as models write it: numbers and whole parts as strings, 2 as 2.0, nulls, other types."""
    text = msgspec.json.encode(value).decode()
    here: list[Json] = [value, value, text, None]
    if isinstance(value, int) and not isinstance(value, bool):
        here.append(float(value))
    whole = st.sampled_from(here) | SCALARS
    match value:
        case dict():
            return whole | st.fixed_dictionaries({name: spoilt(child) for name, child in value.items()})
        case list():
            inside: st.SearchStrategy[Json] = st.tuples(*map(spoilt, value)).map(list)
            return whole | inside
        case _:
            return whole


@st.composite
def mistaken(draw: st.DrawFn) -> Specimen:
    """A tool's parameters, and arguments that may fit, may be coerced, or may not."""
    schema, value = draw(specimens())
    assert isinstance(value, dict)
    return Specimen(schema, {name: draw(spoilt(child)) for name, child in value.items()})


_WORDS = st.sampled_from(["a", "b", "ab", "c"])
_ANY_SCALARS: st.SearchStrategy[Json] = (
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from([1.0, 0.5]) | _WORDS
)


def any_values() -> st.SearchStrategy[Json]:
    """Small values, of few names and scalars."""
    return st.recursive(
        _ANY_SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=3),
        max_leaves=8,
    )


_DEFINITIONS = 3
_NAMES: st.SearchStrategy[Json] = st.lists(_WORDS, max_size=1).map(list)


def _json(named: dict[str, Json]) -> Json:
    return named


@st.composite
def any_schemas(draw: st.DrawFn) -> Part:
    """Small schemas of all kinds, which refer to their own parts from everywhere, and so to themselves."""
    # One that refers to itself for the same value would have no meaning: there a part refers to later ones alone.
    definitions: Part = {f"d{i}": draw(_any_parts(i + 1, 2)) for i in range(_DEFINITIONS)}
    return {"properties": {"a": draw(_any_parts(0, 2))}, "$defs": definitions}


@st.composite
def _any_parts(draw: st.DrawFn, later: int, levels: int) -> Part:
    """A part that refers, for the value itself, to definitions from that number on."""
    same, other = _inner(later, levels), _inner(0, levels)
    some = st.lists(same, min_size=1, max_size=2)
    rules: dict[str, st.SearchStrategy[Json]] = {
        "type": st.sampled_from(["object", "array", "string", "integer", ["object", "null"]]),
        "enum": st.lists(any_values(), min_size=1, max_size=3),
        "const": any_values(),
        "pattern": st.sampled_from(["^a", "b$", "(?=a)", "^(?!ab)"]),
        "minimum": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "minItems": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
        "uniqueItems": st.just(True),
        "required": st.lists(_WORDS, max_size=2, unique=True).map(list),
        "dependentRequired": st.dictionaries(_WORDS, _NAMES, max_size=2).map(_json),
        "allOf": some.map(list),
        "anyOf": some.map(list),
        "oneOf": some.map(list),
        "not": same,
        "if": same,
        "then": same,
        "else": same,
        "dependentSchemas": st.dictionaries(_WORDS, same, max_size=2).map(dict),
        "properties": st.dictionaries(_WORDS, other, max_size=3).map(dict),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), other, max_size=2).map(dict),
        "additionalProperties": other,
        "propertyNames": other,
        "items": other,
        "prefixItems": st.lists(other, min_size=1, max_size=2).map(list),
        "contains": other,
        "minContains": st.integers(0, 2),
        "$ref": _references(later),
    }
    chosen = draw(st.lists(st.sampled_from([*rules]), max_size=4, unique=True))
    return {keyword: draw(rules[keyword]) for keyword in chosen if keyword != "$ref" or later < _DEFINITIONS}


def _inner(later: int, levels: int) -> st.SearchStrategy[Json]:
    referring: st.SearchStrategy[Json] = _references(later).map(lambda to: {"$ref": to})
    parts: list[st.SearchStrategy[Json]] = [st.booleans(), *([referring] if later < _DEFINITIONS else [])]
    return st.one_of(*parts, _any_parts(later, levels - 1)) if levels else st.one_of(*parts)


def _references(later: int) -> st.SearchStrategy[Json]:
    return st.integers(min(later, _DEFINITIONS - 1), _DEFINITIONS - 1).map(lambda i: f"#/$defs/d{i}")
