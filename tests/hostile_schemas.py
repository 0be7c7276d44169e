"""Schemas of strangers that cost much to check, each with arguments that cost most: those of the attack, and more."""

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from stages.schema.value import Json

Part = dict[str, Json]


class Hostile(NamedTuple):
    """A tool's parameters, and arguments of a call."""

    name: str
    schema: Part
    arguments: Json


def hostile_schemas() -> Iterator[Hostile]:
    """All of them."""
    for group in (_chains, _recursive, _patterns, _lists, _exotic, _large):
        yield from (Hostile(*one) for one in group())


Named = Iterator[tuple[str, Part, Json]]


def _of(a: Json, definitions: Part | None = None, **others: Json) -> Part:
    return {"type": "object", "properties": {"a": a}, "$defs": definitions or {}, **others}


def _chain(length: int, link: Callable[[Part], Json], last: Json = True) -> Part:
    """Definitions, each made of the reference to the next one."""
    links: Part = {f"d{i}": link({"$ref": f"#/$defs/d{i + 1}"}) for i in range(length)}
    return _of({"$ref": "#/$defs/d0"}, {**links, f"d{length}": {"type": "integer"} if last is True else last})


def _chains() -> Named:
    """Exponential in the value itself: each definition asks the next one twice."""
    links: dict[str, Callable[[Part], Json]] = {
        "anyOf": lambda to: {"anyOf": [to, to]},
        "oneOf": lambda to: {"oneOf": [to, {**to, "title": "x"}]},
        "allOf": lambda to: {"allOf": [to, to]},
        "not": lambda to: {"not": {"not": to}, "allOf": [to]},
        "not of anyOf": lambda to: {"not": {"anyOf": [to, {"not": to}]}},
        "if": lambda to: {"if": to, "then": to, "else": to},
        "if within if": lambda to: {"if": {"if": to, "then": to}, "else": {"if": to, "else": to}},
        "dependentSchemas": lambda to: {"dependentSchemas": {"x": to, "y": to}},
        "beside $ref": lambda to: {**to, "anyOf": [to]},
        "allOf and anyOf": lambda to: {"allOf": [{"anyOf": [to, {"not": to}]}, {"anyOf": [{"not": to}, to]}]},
        "unevaluatedProperties": lambda to: {"allOf": [to], "unevaluatedProperties": False},
        "unevaluatedItems": lambda to: {"anyOf": [to], "unevaluatedItems": False},
        "nullable": lambda to: {"anyOf": [to, {"type": "null"}, {"anyOf": [to, {"type": "null"}]}]},
    }
    of_objects = ("dependentSchemas", "unevaluatedProperties")
    for name, link in links.items():
        value: Json = {"x": 1, "y": 1} if name in of_objects else [1] if name == "unevaluatedItems" else "x"
        last: Json = {"properties": {"x": {"type": "string"}}} if name in of_objects else True
        yield f"30 times {name}", _chain(30, link, last), {"a": value}
    twice: Part = {"anyOf": [{"$ref": "#/%24defs/d%31"}, {"$ref": "#/$defs/d%31"}]}
    yield (
        "percent-encoded",
        json.loads(json.dumps(_chain(30, links["anyOf"])).replace("#/$defs/d", "#/%24defs/%64")),
        {"a": "x"},
    )
    yield "percent-encoded, itself", _of(twice, {"d1": {"anyOf": [twice, twice]}}), {"a": "x"}
    anchored = json.loads(json.dumps(_chain(30, links["anyOf"])).replace("#/$defs/d", "#d"))
    for name, part in anchored["$defs"].items():
        part["$anchor"] = name
    yield "anchors", anchored, {"a": "x"}
    yield "long chain of references", _chain(3_000, lambda to: to), {"a": "x"}
    yield "long chain of members", _chain(1_500, lambda to: {"properties": {"x": to}}), {"a": {"x": {"x": 1}}}
    crossed: Part = {
        f"d{i}": {
            "type": "object",
            "properties": {f"p{j}": {"$ref": f"#/$defs/d{(i * 7 + j * 13) % 400}"} for j in range(5)},
        }
        for i in range(400)
    }
    yield "400 definitions of one another", _of({"$ref": "#/$defs/d0"}, crossed), {"a": {"p1": {"p2": 5}}}


def _nest(depth: int, end: Json, **beside: Json) -> Json:
    value = end
    for _ in range(depth):
        value = {"c": value, **beside}
    return value


def _recursive() -> Named:
    """Exponential in the depth of the value: each alternative describes the same member by a reference back."""
    child: Part = {"c": {"$ref": "#/$defs/n"}}
    late: Json = {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}
    branches: dict[str, list[Json]] = {
        "kinds told late": [{"properties": {**child, "z": late}}, {"properties": {**child, "z": {"type": "string"}}}],
        "kinds told by required": [{"properties": child, "required": ["x"]}, {"properties": child, "required": ["y"]}],
        "kinds alike": [{"properties": child, "title": "1"}, {"properties": child, "minProperties": 9}],
    }
    for name, kinds in branches.items():
        for keyword in ("anyOf", "oneOf"):
            schema = _of({"$ref": "#/$defs/n"}, {"n": {keyword: [*kinds, {"type": "null"}]}})
            yield f"{keyword}, {name}", schema, {"a": _nest(58, "x", z=[["x"]])}
    of_itself: dict[str, Part] = {
        "patternProperties": {"patternProperties": {"^c": {"$ref": "#"}, "c$": {"$ref": "#"}}},
        "additionalProperties": {"additionalProperties": {"$ref": "#"}, "patternProperties": {"c": {"$ref": "#"}}},
        "unevaluatedProperties": {"anyOf": [{}], "unevaluatedProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}},
        "then": {"if": {"properties": {"c": {"$ref": "#"}}}, "then": {"properties": {"c": {"$ref": "#"}}}},
        "dependentSchemas": {
            "properties": {"c": {"$ref": "#"}},
            "dependentSchemas": {"c": {"properties": {"c": {"$ref": "#"}}}},
        },
    }
    for name, rules in of_itself.items():
        yield f"{name} of itself", {"type": ["object", "integer"], **rules}, _nest(58, "x")
    for reference in ("$dynamicRef", "$recursiveRef"):
        again: Part = {"c": {reference: "#"}}
        kinds = [{"properties": again}, {"properties": {**again, "d": {"type": "integer"}}}]
        yield reference, {"type": ["object", "integer"], "anyOf": kinds}, _nest(58, "x", d="x")
    meta: Json = [{"$ref": "https://json-schema.org/draft/2020-12/schema"}] * 2
    nots: Json = {"type": "nothing"}
    for _ in range(50):
        nots = {"not": nots}
    yield "the published schema, twice", {"type": "object", "$dynamicAnchor": "meta", "allOf": meta}, nots
    for kind in ("prefixItems", "items", "contains"):
        inner: Json = [{"$ref": "#/$defs/n"}] if kind == "prefixItems" else {"$ref": "#/$defs/n"}
        part: Part = {"anyOf": [{kind: inner, "maxItems": 1}, {kind: inner, "minItems": 2}, {"type": "boolean"}]}
        deep: Json = "x"
        for _ in range(58):
            deep = [deep]
        yield (
            f"{kind} of itself",
            _of({"$ref": "#/$defs/n"}, {"n": {"type": ["array", "boolean"], **part}}),
            {"a": deep},
        )
    retried: Part = {
        "anyOf": [
            {"properties": {"c": {"$ref": "#/$defs/n"}, "k": {"type": t}}, "required": ["c"]}
            for t in ("integer", "number", "boolean")
        ]
    }
    yield (
        "coerced in each alternative",
        _of({"$ref": "#/$defs/n"}, {"n": retried}),
        {"a": _nest(58, {}, k="x")},
    )
    spelt: Part = {
        "anyOf": [{"properties": {"c": {"$ref": "#/$defs/n"}, "k": {"const": k}}, "required": ["c"]} for k in (1, 2)]
    }
    yield (
        "coerced, told by constants",
        _of({"$ref": "#/$defs/n"}, {"n": {"anyOf": [spelt, {"type": "null"}]}}),
        {"a": _nest(58, {}, k="2")},
    )


def _patterns() -> Named:
    for pattern in (
        "(?=a)(a|a)*b$",
        "(?=a)(a{0,50}){0,50}b$",
        r"^(?:(?=a)a|a)*b$",
        r"(?:(?=a)a|a){12}b",
        r"(a*)*\1b",
        r"(?<!x)(?:a|aa|aaa)*c",
        r"^(?=(a+)+$)b",
        r"(?=(?=(?=(a|aa)+c)b)b)",
    ):
        for length in (100, 1_000, 100_000):
            yield f"look-around {pattern} on {length}", _of({"pattern": pattern}), {"a": "a" * length}
    yield (
        "look-around on 200 texts",
        _of({"items": {"pattern": "(?=a)(a|a)*b$"}}),
        {"a": ["a" * 490 + str(i) for i in range(200)]},
    )
    yield "look-around in names", {"type": "object", "patternProperties": {"(?=a)(a|a)*b$": {}}}, {"a" * 50_000: 1}
    yield "a pattern of 1 MB", _of({"pattern": "a?" * 200_000}), {"a": "b"}
    yield (
        "100 patterns of counted classes",
        _of({"allOf": [{"pattern": rf"\p{{L}}{{1,{i + 100}}}$"} for i in range(100)]}),
        {"a": "a" * 20_000},
    )
    yield "counts of counts", _of({"pattern": "((((a{0,50}){0,50}){0,50}){0,50})b"}), {"a": "a" * 20_000}
    yield "many states", _of({"pattern": "[ab]*a[ab]{1000}c"}), {"a": "abbabaabbbab" * 4_000}
    yield (
        "200 patterns on one text",
        _of({"allOf": [{"pattern": f"[ab]*a[ab]{{{i + 1}}}c"} for i in range(200)]}),
        {"a": "abbabaabbbab" * 2_000},
    )
    yield (
        "500 patterns of names",
        {"type": "object", "patternProperties": {f"[a-z]*{i}[0-9]": {} for i in range(500)}},
        {f"name{i}": 1 for i in range(500)},
    )
    yield "format regex", _of({"format": "regex"}), {"a": "(a?){1000}" * 5_000}
    yield (
        "formats",
        _of({"items": {"anyOf": [{"format": one} for one in ("idn-email", "uri-template", "idn-hostname")]}}),
        {"a": ["a." * 5_000 + "é"] * 5},
    )
    yield (
        "pattern retried in each alternative",
        _of({"anyOf": [{"pattern": f"(?=a)(a|a)*b{i}$"} for i in range(50)]}),
        {"a": "a" * 900},
    )


def _lists() -> Named:
    words: list[Json] = [f"value {i}" for i in range(5_000)]
    strange: list[Json] = [f"other {i}" for i in range(5_000)]
    objects: list[Json] = [{"x": [i, {"y": i}]} for i in range(2_000)]
    yield "5,000 values, enum of 5,000", _of({"items": {"enum": words}}), {"a": strange}
    yield (
        "2,000 objects, enum of 2,000",
        _of({"items": {"enum": objects}}),
        {"a": [{"x": [i, {"z": i}]} for i in range(2_000)]},
    )
    yield "5,000 numbers, enum of 5,000 texts", _of({"items": {"enum": words}}), {"a": [*range(5_000)]}
    yield "enum of 500,000", _of({"enum": [f"value {i}" for i in range(500_000)]}), {"a": "x"}
    yield (
        "5,000 unknown of 5,000 arguments",
        {"type": "object", "properties": {str(w): {} for w in words}, "additionalProperties": False},
        dict.fromkeys(map(str, strange), 1),
    )
    yield (
        "5,000 wrong arguments",
        {"type": "object", "properties": {str(w): {"type": "integer", "title": str(w)} for w in words}},
        dict.fromkeys(map(str, words), "x"),
    )
    yield (
        "5,000 texts for numbers",
        {"type": "object", "properties": {str(w): {"type": "integer", "title": str(w)} for w in words}},
        dict.fromkeys(map(str, words), "1"),
    )
    yield (
        "5,000 missing, 5,000 unknown",
        {"type": "object", "required": words, "additionalProperties": False},
        dict.fromkeys(map(str, strange), 1),
    )
    yield "const of 5,000", _of({"items": {"const": words}}), {"a": [words, strange]}
    yield (
        "const among many",
        _of({"items": {"anyOf": [{"const": [*words[:500], i]} for i in range(100)]}}),
        {"a": [[*words[:500], i] for i in range(100, 160)]},
    )
    yield "uniqueItems", _of({"uniqueItems": True}), {"a": [{"x": i, "y": [i]} for i in range(5_000)]}
    yield "uniqueItems of long texts", _of({"uniqueItems": True}), {"a": ["x" * 500 + str(i) for i in range(200)]}
    yield (
        "contains",
        _of({"contains": {"const": 1}, "minContains": 5_000, "maxContains": 6_000}),
        {"a": [*range(20_000)]},
    )
    yield (
        "minContains of alternatives",
        _of({"contains": {"anyOf": [{"const": str(i)} for i in range(200)]}, "minContains": 9}),
        {"a": [*range(3_000)]},
    )
    yield "propertyNames", {"type": "object", "propertyNames": {"enum": words}}, dict.fromkeys(map(str, strange), 1)
    yield (
        "dependentRequired",
        {"type": "object", "dependentRequired": {str(w): words[:20] for w in words}},
        dict.fromkeys(map(str, words[:20]), 1),
    )
    yield "prefixItems", _of({"prefixItems": [{"type": "integer"}] * 5_000, "items": False}), {"a": ["x"] * 5_000}


def _exotic() -> Named:
    nots: Json = {"type": "integer"}
    for _ in range(60):
        nots = {"not": nots}
    yield "not, 60 deep", _of(nots), {"a": "x"}
    mixed: Json = {"type": "integer"}
    for level in range(25):
        mixed = {"anyOf": [mixed, {"const": level}]} if level % 2 else {"allOf": [mixed, {"title": "x"}]}
    yield "allOf and anyOf, 25 deep", _of(mixed), {"a": "x"}
    conditions: Json = True
    for level in range(55):
        conditions = {"if": {"const": level}, "then": {"type": "integer"}, "else": conditions}
    yield "if in else, 55 deep", _of(conditions), {"a": "x"}
    yield (
        "200 alternatives of objects",
        _of(
            {
                "items": {
                    "anyOf": [
                        {"properties": {"k": {"const": i}, "v": {"type": "integer"}}, "required": ["k", "v"]}
                        for i in range(200)
                    ]
                }
            }
        ),
        {"a": [{"k": i % 200, "v": "x"} for i in range(200)]},
    )
    yield (
        "names of its own keywords",
        _of({"forge:part": 0, "forge:pattern": "(?=a)(a|a)*b$"}),
        {"a": "a" * 5_000},
    )
    members: Part = {f"d{i}": {"properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "pq"}} for i in range(30)}
    yield (
        "members, twice each",
        _of({"$ref": "#/$defs/d0"}, {**members, "d30": {}}),
        {"a": {"p": {"q": {"p": 1}}}},
    )
    same: Part = {f"x{i}": {"y": {"$ref": f"#/$defs/x{(i + 1) % 800}/y"}} for i in range(800)}
    yield "800 definitions of one name", _of({"$ref": "#/$defs/x0/y"}, same), {"a": 1}

    def ten(number: int) -> list[Json]:
        return [{"$ref": f"#/$defs/d{number}"} for _ in range(10)]

    wide: Part = {f"d{i}": {"allOf": ten(i + 1)} for i in range(9)}
    yield (
        "allOf of ten, nine deep",
        _of({"$ref": "#/$defs/d0"}, {**wide, "d9": {"type": "object"}}),
        {"a": 1},
    )


def _large() -> Named:
    yield (
        "5,000 members",
        {"type": "object", "properties": {f"p{i}": {"type": "string", "title": str(i)} for i in range(5_000)}},
        {"p1": 1},
    )
    yield "5,000 alternatives", _of({"anyOf": [{"const": i} for i in range(5_000)]}), {"a": "x"}
    yield (
        "5,000 alternatives for 200",
        _of({"items": {"anyOf": [{"const": i} for i in range(5_000)]}}),
        {"a": ["x"] * 200},
    )
    yield (
        "a schema of 1 MB",
        {"type": "object", "properties": {f"p{i}": {"description": "x" * 200} for i in range(5_000)}},
        {"p1": 1},
    )
    yield (
        "arguments of 100 kB",
        _of(
            {"items": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "integer"}]}},
            {"n": {"items": {"$ref": "#/$defs/n"}, "type": "array"}},
        ),
        {"a": [[[1]], 2, "x"] * 5_000},
    )
