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
