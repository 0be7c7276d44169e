"""Projection: what is left of a schema for llama.cpp's grammars, and what is said to be dropped."""

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.schema import Fits, checker, project
from stages.schema.projection import MOST_OPTIONAL, plain_pattern, written_or_null
from stages.schema.value import Json

ANYTHING = {"type": ["object", "array", "string", "number", "boolean", "null"]}


def projected(schema: object) -> tuple[Json, tuple[str, ...]]:
    result = project(json.dumps(schema).encode(), "llama.cpp")
    value: Json = json.loads(bytes(result.schema))
    return value, result.dropped


def of_member(schema: object) -> tuple[Json, tuple[str, ...]]:
    whole, dropped = projected({"type": "object", "properties": {"a": schema}})
    assert isinstance(whole, dict)
    assert isinstance(whole["properties"], dict)
    return whole["properties"]["a"], dropped


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "description": "the city"},
        {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
        {"type": "number", "minimum": 0.5},
        {"type": ["string", "null"]},
        {"type": "string", "format": "date-time"},
        {"type": "string", "minLength": 1, "maxLength": 100},
        {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
        {"enum": ["a", 1, None]},
        {"const": {"$ref": "not a reference"}},
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 5},
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"], "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object"},
    ],
)
def test_what_the_grammar_bears_stays_as_it_is(schema: object) -> None:
    assert of_member(schema) == (schema, ())


@pytest.mark.parametrize(
    ("schema", "left", "dropped"),
    [
        ({}, ANYTHING, ()),
        (True, ANYTHING, ()),
        ({"description": "free"}, {"description": "free", **ANYTHING}, ()),
        ({"minLength": 3}, ANYTHING, ('minLength at "a"',)),
        ({"type": "string", "pattern": "x"}, {"type": "string"}, ('pattern at "a"',)),
        ({"type": "string", "pattern": "^(?=a)b$"}, {"type": "string"}, ('pattern at "a"',)),
        ({"type": "string", "pattern": "^\\d+$"}, {"type": "string", "pattern": "^[0-9]+$"}, ()),
        ({"type": "string", "format": "email"}, {"type": "string"}, ('format at "a"',)),
        ({"type": "string", "maxLength": 5000}, {"type": "string"}, ('maxLength at "a"',)),
        ({"type": "integer", "minimum": 0.5}, {"type": "integer"}, ('minimum at "a"',)),
        ({"type": "integer", "minimum": 3.0}, {"type": "integer", "minimum": 3}, ()),
        ({"type": "integer", "maximum": 10**30}, {"type": "integer"}, ('maximum at "a"',)),
        ({"type": "integer", "multipleOf": 5}, {"type": "integer"}, ('multipleOf at "a"',)),
        ({"type": "integer", "enum": [1, 2]}, {"enum": [1, 2]}, ()),
        ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, ()),
        (
            {"type": "string", "anyOf": [{"format": "date"}, {"const": "today"}]},
            {"anyOf": [{"type": "string", "format": "date"}, {"const": "today"}]},
            (),
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "maxItems": 10_000, "uniqueItems": True},
            {"type": "array", "items": {"type": "integer"}},
            ('uniqueItems at "a"', 'maxItems at "a"'),
        ),
        ({"type": "array", "minItems": 1}, {"type": "array", "minItems": 1, "items": ANYTHING}, ()),
        ({"type": "array", "prefixItems": [{"type": "integer"}]}, {"type": "array"}, ('prefixItems at "a"',)),
        ({"type": "array", "items": {"not": {}, "type": "null"}}, {"type": "array", "items": {"type": "null"}}, None),
        (
            {"type": "object", "properties": {}, "patternProperties": {"^x": {}}, "additionalProperties": False},
            {"type": "object", "properties": {}, "additionalProperties": True},
            ('patternProperties at "a"',),
        ),
        (
            {"type": "object", "required": ["b"]},
            {"type": "object", "properties": {"b": ANYTHING}, "required": ["b"], "additionalProperties": True},
            (),
        ),
        (
            {"type": "object", "properties": {"b": {"type": "null"}}, "if": {}, "then": {"properties": {"c": {}}}},
            {"type": "object", "properties": {"b": {"type": "null"}}, "additionalProperties": True},
            ('if at "a"', 'then at "a"'),
        ),
        (
            {"type": "object", "properties": {"b": {"type": "null"}}, "anyOf": [{"required": ["b"]}]},
            {"type": "object", "properties": {"b": {"type": "null"}}},
            ('anyOf at "a"',),
        ),
        (
            {"type": "object", "properties": {"é": {"type": "null"}}, "additionalProperties": True},
            {"type": "object", "properties": {"é": {"type": "null"}}},
            ('additionalProperties at "a"',),
        ),
        ({"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 9}]}, {"type": "integer"}, ('allOf at "a"',)),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, ANYTHING, ('allOf at "a"',)),
        (
            {"type": "object", "properties": {"x": {"type": "null"}}, "allOf": [{"properties": {"y": {}}}]},
            {"type": "object", "properties": {"x": {"type": "null"}}, "additionalProperties": True},
            ('allOf at "a"',),
        ),
    ],
)
def test_what_the_grammar_does_not_bear_is_rewritten_or_dropped(
    schema: object, left: object, dropped: tuple[str, ...] | None
) -> None:
    found, named = of_member(schema)
    assert found == left
    assert dropped is None or named == dropped


def test_every_reference_leads_to_a_definition_with_a_plain_name() -> None:
    """The converter knows no escapes in pointers and no reference to the root."""
    leaf = {"type": "object", "properties": {"up": {"$ref": "#"}, "b": {"$ref": "#/properties/b", "minimum": 1}}}
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/x~1y", "description": "A"}, "b": {"type": "null"}},
        "definitions": {"x/y": leaf},
    }
    found, dropped = projected(schema)
    a, b = {"description": "A", "$ref": "#/$defs/x-1y"}, {"type": "null"}
    inner = {"type": "object", "properties": {"up": {"$ref": "#/$defs/root"}, "b": {"$ref": "#/$defs/b"}}}
    root = {"type": "object", "properties": {"a": a, "b": b}}
    assert found == {**root, "$defs": {"x-1y": inner, "root": root, "b": b}}
    assert dropped == ('minimum at "x-1y.b"',)


def test_definitions_of_the_same_last_name_are_told_apart() -> None:
    defs = {"a": {"$defs": {"x": {"type": "null"}}}, "x": {"type": "boolean"}}
    found, _ = projected(
        {"properties": {"p": {"$ref": "#/$defs/x"}, "q": {"$ref": "#/$defs/a/$defs/x"}}, "$defs": defs}
    )
    assert isinstance(found, dict)
    assert found["$defs"] == {"x": {"type": "boolean"}, "x-2": {"type": "null"}}


def test_a_definition_that_leads_only_to_itself_would_hang_the_grammar() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}
    found, dropped = projected(schema)
    assert found == {"$ref": "#/$defs/a", "$defs": {"a": ANYTHING, "b": {"$ref": "#/$defs/a"}}}
    assert dropped == ('a reference that leads only to itself at "a"',)


def test_all_of_beside_a_description_is_the_reference_that_it_wraps() -> None:
    found, dropped = of_member({"allOf": [{"$ref": "#"}], "description": "more"})
    assert found == {"description": "more", "$ref": "#/$defs/root"}
    assert dropped == ()


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("^a$", "^a$"),
        (r"^\w+@\w+\.com$", "^[A-Za-z0-9_]+@[A-Za-z0-9_]+[.]com$"),
        ("^(?:ab){2,3}$", "^(ab){2,3}$"),
        (r"^[\w.-]+$", "^[A-Za-z0-9_.-]+$"),
        (r"^ab\.?$", "^ab[.]?$"),
        ("^[-a]$", "^[a-]$"),
        ("^[a-z-]$", "^[a-z-]$"),
        ("^(a|b)$", "^(a|b)$"),
    ],
)
def test_a_pattern_that_is_borne_in_other_words(pattern: str, left: str) -> None:
    assert plain_pattern(pattern) == left


@pytest.mark.parametrize(
    "pattern",
    [
        *("a", "^a", "a$", "^$", "^a|b$", "^(a|)$", "^()$", "^(a$", "^a)$", "^)($", "^*a$", "^a**$", "^a+?$"),
        *(r"^a\$", r"^(a)\1$"),
        *("^.$", "^[^a]$", "^é$", '^"$', r"^\\$", r"^\s$", r"^\bx$", "^(?=a)a$", "^(?<n>a)$", r"^\u0041$", r"^\x41$"),
        *("^a{3,}$", "^a{,3}$", "^a{2,500}$", "^a{3,2}$", "^[z-a]$", "^[+-9]$", "^[+--]$", r"^[\d-z]$", "^[a-c-e]$"),
    ],
)
def test_a_pattern_that_is_not_borne(pattern: str) -> None:
    assert plain_pattern(pattern) is None


PIECES = st.lists(
    st.sampled_from(
        [
            *("a", "7", "-", "\\d", "\\w", "\\.", "\\*", "[a-c]", "[\\d_-]", "[$.|-]", "(", "(?:", ")", "|", "*"),
            *("+", "?", "{2}", "{1,3}"),
        ]
    ),
    min_size=1,
    max_size=9,
)


@given(PIECES.map("".join), st.text("abc7_-.*$|", max_size=6))
def test_a_pattern_in_other_words_means_the_same(middle: str, text: str) -> None:
    written = plain_pattern(f"^{middle}$")
    if written is not None:
        original = jsonschema_rs.is_valid({"pattern": f"^{middle}$"}, text)
        assert jsonschema_rs.is_valid({"pattern": written}, text) == original


def strict(schema: object) -> tuple[Json, tuple[str, ...]]:
    """The member `a` in OpenAI's strict subset, required, and what was dropped."""
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    result = project(json.dumps(whole).encode(), "openai-strict")
    assert not result.refused
    return json.loads(bytes(result.schema))["properties"]["a"], result.dropped


CLOSED = {"additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "left", "dropped"),
    [
        ({"type": "string", "description": "x", "default": "y"}, {"description": "x", "type": "string"}, ()),
        ({"type": "string", "minLength": 1}, {"type": "string"}, ('minLength at "a"',)),
        ({"type": "integer", "minimum": 1}, {"minimum": 1, "type": "integer"}, ()),
        ({"enum": ["a", None]}, {"type": ["null", "string"], "enum": ["a", None]}, ()),
        ({"const": 1}, {"type": "integer", "enum": [1]}, ()),
        ({"enum": [True, 1.5]}, {"type": ["boolean", "number"], "enum": [True, 1.5]}, ()),
        (
            {"type": "object", "properties": {"b": {"type": "null"}}},
            {
                "type": "object",
                "properties": {"b": {"anyOf": [{"type": "null"}, {"type": "null"}]}},
                "required": ["b"],
                **CLOSED,
            },
            (),
        ),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "null"}], "minItems": 2, "maxItems": 2},
            {
                "minItems": 2,
                "maxItems": 2,
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            ('prefixItems at "a"',),
        ),
    ],
)
def test_what_the_strict_subset_makes_of_a_part(schema: object, left: object, dropped: tuple[str, ...]) -> None:
    assert strict(schema) == (left, dropped)


def nested(depth: int) -> dict[str, object]:
    inner: dict[str, object] = {"type": "string"}
    for _ in range(depth):
        inner = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    return inner


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"properties": {"a": {}}}, 'members of any name may stand at "a"'),
        ({"properties": {"a": {"type": "object"}}}, 'members of any name may stand at "a"'),
        ({"properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}}}, "any name"),
        ({"properties": {"é": {"type": "null"}}, "additionalProperties": True}, "further members"),
        ({"properties": {"a": {"type": "array"}}}, 'anything may stand at "a[]"'),
        ({"properties": {"a": {"enum": [{}]}}}, "an object or a list is among the values"),
        (nested(12), "nested deeper"),
        ({"properties": {f"p{n}": {"type": "null"} for n in range(5001)}}, "5001 members"),
        ({"properties": {"a": {"enum": [f"{n}" for n in range(1001)]}}}, "1001 listed values"),
    ],
)
def test_what_cannot_be_strict_is_refused_with_the_reason_and_stays_as_llama_has_it(schema: object, says: str) -> None:
    encoded = json.dumps({"type": "object", **schema}).encode()  # type: ignore[dict-item]  # of a table
    result = project(encoded, "openai-strict")
    assert says in result.refused
    assert bytes(result.schema) == bytes(project(encoded, "llama.cpp").schema)


def test_recursion_stays_a_reference() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["next"],
    }
    result = project(json.dumps(node).encode(), "openai-strict")
    root = {"$ref": "#/$defs/root"}
    assert not result.refused
    assert json.loads(bytes(result.schema))["properties"]["next"] == {"anyOf": [root, {"type": "null"}]}


# --- Optional members, written or null: what is accepted then means what it meant when they could be left out

KINDS: list[Json] = [{"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"type": "string"}}]


def schema(members: dict[str, Json], *required: str) -> dict[str, Json]:
    return {"type": "object", "properties": members, "required": [*required], "additionalProperties": False}


def test_an_optional_member_is_written_or_null() -> None:
    written = written_or_null(schema({"a": KINDS[0], "b": KINDS[1]}, "a"))
    assert written["required"] == ["a", "b"]
    assert written["properties"] == {"a": KINDS[0], "b": {"anyOf": [KINDS[1], {"type": "null"}]}}


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"enum": ["a", None]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": "a"}, False),
    ],
)
def test_one_that_may_be_null_is_written_as_it_is_unless_null_does_not_mean_its_default(
    kind: Json, required: bool
) -> None:
    written = written_or_null(schema({"a": kind}))
    assert written["properties"] == {"a": kind}
    assert written["required"] == (["a"] if required else [])


def test_where_there_are_many_none_has_to_be_written() -> None:
    many = schema({f"a{n}": KINDS[0] for n in range(MOST_OPTIONAL + 1)})
    assert written_or_null(many) == many


@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    needed=st.sets(st.integers(0, 3)),
    left_out=st.sets(st.integers(0, 3)),
)
def test_null_in_place_of_what_is_left_out_is_the_same_call(
    kinds: list[Json], needed: set[int], left_out: set[int]
) -> None:
    values: list[Json] = ["a", 7, ["b"]]
    members = {f"m{n}": kind for n, kind in enumerate(kinds)}
    whole = schema(members, *(f"m{n}" for n in needed if n < len(kinds)))
    call = {f"m{n}": values[KINDS.index(kind)] for n, kind in enumerate(kinds) if n in needed or n not in left_out}
    written = {name: call.get(name) for name in members}
    assert jsonschema_rs.validator_for(written_or_null(whole)).is_valid(written)
    found = checker(json.dumps(whole).encode())(json.dumps(written))
    assert isinstance(found, Fits)
    assert json.loads(found.arguments) == call
