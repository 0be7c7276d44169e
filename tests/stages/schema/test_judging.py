"""A check takes bounded work, whatever the schema; where that is too little, it says so or takes any value."""

import json

import msgspec
import pytest

from stages.schema import Fits, Misfit, checker, project, unchecked
from stages.schema.judging import MOST_VISITS, visits
from stages.schema.value import Json
from tests.counted import calls_of
from tests.hostile_schemas import Hostile, hostile_schemas

SMALL = [
    each
    for each in hostile_schemas()
    if len(json.dumps(each.schema)) < 40_000 and len(json.dumps(each.arguments)) < 20_000
]


@pytest.mark.parametrize("hostile", SMALL, ids=lambda each: each.name)
def test_a_hostile_schema_costs_little(hostile: Hostile) -> None:
    """Without bounds many of these never end; `tests/soak/test_hostile_schemas.py` measures the milliseconds."""
    schema, arguments = json.dumps(hostile.schema).encode(), json.dumps(hostile.arguments)
    assert isinstance(checker(schema)(arguments), Fits | Misfit)
    project(schema, "llama.cpp")
    project(schema, "openai-strict")


def branching(depth: int, leaf: Json) -> Json:
    """A binary tree of two kinds of nodes, which are told apart by what comes last."""
    if not depth:
        return {"v": leaf}
    return {"l": branching(depth - 1, leaf), "r": branching(depth - 1, 1), ("v" if depth % 2 else "n"): depth}


SIDES: dict[str, Json] = {"l": {"$ref": "#/$defs/node"}, "r": {"$ref": "#/$defs/node"}}
TREE = checker(
    msgspec.json.encode(
        {
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/node"}},
            "$defs": {
                "node": {"anyOf": [{"$ref": "#/$defs/valued"}, {"$ref": "#/$defs/named"}]},
                "valued": {"type": "object", "properties": {**SIDES, "v": {"type": "integer"}}, "required": ["v"]},
                "named": {"type": "object", "properties": {**SIDES, "n": {"type": "integer"}}, "required": ["n"]},
            },
        }
    )
)


def written(depth: int, leaf: Json = 1) -> str:
    return msgspec.json.encode({"tree": branching(depth, leaf)}).decode()


def test_a_tree_of_two_kinds_is_read_in_time() -> None:
    """By trying both kinds at each of its 4,095 nodes it would not be."""
    assert isinstance(TREE(written(11)), Fits)


def test_in_a_tree_of_two_kinds_the_wrong_leaf_is_found_and_mended() -> None:
    wrong = TREE(written(4, "x"))
    assert isinstance(wrong, Misfit)
    assert [(one.path, one.rule) for one in wrong.problems] == [("tree", "anyOf")]
    mended = TREE(written(4, "7"))
    assert isinstance(mended, Fits)
    assert mended.repairs == ('string to integer at "tree.l.l.l.l.v"',)


def test_arguments_that_take_too_many_questions_are_refused_as_too_large() -> None:
    chain = next(each for each in hostile_schemas() if each.name == "long chain of references")
    result = checker(json.dumps(chain.schema).encode())('{"a":1}')
    assert isinstance(result, Misfit)
    assert [one.rule for one in result.problems] == ["size"]


@pytest.mark.parametrize(("length", "kind"), [(100, Misfit), (100_000, Fits)])
def test_look_around_is_searched_up_to_a_length(length: int, kind: type[Fits | Misfit]) -> None:
    check = checker(b'{"type":"object","properties":{"a":{"pattern":"(?=a)(a|a)*b$"}}}')
    assert isinstance(check(json.dumps({"a": "a" * length})), kind)
    assert isinstance(check(json.dumps({"a": "a" * length + "b"})), Fits)


def test_what_is_not_checked_is_said() -> None:
    large: dict[str, Json] = {"type": "string", "pattern": "[a-z]?" * 1_000}
    schema = {"type": "object", "properties": {"sku": large, "qty": {"type": "integer"}}}
    assert unchecked(json.dumps(schema).encode()) == (
        "some of its schema costs too much to check, so that any value fits there: properties.sku.pattern"
    )
    check = checker(json.dumps(schema).encode())
    assert isinstance(check('{"sku":"17"}'), Fits)
    assert isinstance(check('{"sku":1.5}'), Misfit)
    assert isinstance(check('{"qty":"x"}'), Misfit)


def test_many_that_are_not_checked_are_summed_up() -> None:
    many: list[Json] = [{"pattern": "[a-z]?" * 1_000 + str(i)} for i in range(9)]
    sentence = unchecked(json.dumps({"type": "object", "properties": {"a": {"allOf": many}}}).encode())
    assert sentence.endswith(
        "properties.a.allOf[0].pattern, properties.a.allOf[1].pattern, properties.a.allOf[2].pattern and 6 more"
    )


def test_of_a_schema_that_nobody_could_read_nothing_is_checked_and_that_is_said() -> None:
    schema = json.dumps(
        {"type": "object", "properties": {"a": {"enum": [f"value {i}" for i in range(50_000)]}}}
    ).encode()
    assert unchecked(schema).endswith(f"all (it has {len(schema)} bytes, at most 500000 are read)")
    assert isinstance(checker(schema)('{"a":"x"}'), Fits)


def test_an_honest_schema_is_checked_whole() -> None:
    assert unchecked(b'{"type":"object","properties":{"a":{"pattern":"^(?=.*[0-9])[a-z0-9]{8,64}$"}}}') == ""


def test_one_text_is_a_list_of_one_and_no_list_of_lists() -> None:
    check = checker(
        b'{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}}}'
    )
    assert isinstance(check('{"a":"x"}'), Misfit)


@pytest.mark.parametrize(
    ("rules", "at"),
    [
        ({"allOf": [{"properties": {"x": True}}], "unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"anyOf": [{"prefixItems": [True]}], "unevaluatedItems": False}, "unevaluatedItems"),
        ({"$dynamicRef": "#other"}, "$dynamicRef"),
        ({"$ref": "#other"}, "$ref"),
    ],
)
def test_what_only_the_validator_could_follow_is_not_checked_and_that_is_said(rules: Json, at: str) -> None:
    named: Json = {"$anchor": "other", "$dynamicAnchor": "other", "type": "null"}
    members: Json = {"a": rules, "b": {"type": "integer"}}
    schema = json.dumps({"type": "object", "properties": members, "$defs": {"n": named}}).encode()
    assert unchecked(schema).endswith(f"any value fits there: properties.a.{at}")
    check = checker(schema)
    for value in ({"y": 1}, [1, 2]):
        assert isinstance(check(json.dumps({"a": value})), Fits)
        assert isinstance(check(json.dumps({"a": value, "b": "x"})), Misfit)


def test_nothing_is_checked_if_such_a_rule_stands_where_no_part_belongs() -> None:
    hidden: Json = {"x": {"unevaluatedProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
    schema = json.dumps({"type": "object", "$ref": "#/components/x", "components": hidden}).encode()
    assert unchecked(schema).endswith("any value fits there: all")
    assert isinstance(checker(schema)('{"a":{"a":{"a":1}}}'), Fits)


@pytest.mark.parametrize(
    ("draft", "part"),
    [
        ("http://json-schema.org/draft-04/schema#", {"type": "integer", "exclusiveMaximum": 3}),
        ("http://json-schema.org/draft-04/schema#", {"type": "integer", "allOf": [True]}),
        ("http://json-schema.org/draft-07/schema#", {"type": "string", "pattern": "(?i)ab"}),
    ],
)
def test_a_part_that_its_draft_does_not_look_at_may_be_invalid(draft: str, part: Json) -> None:
    members: Json = {"a": part, "b": {"type": "boolean"}}
    schema: Json = {"$schema": draft, "type": "object", "$ref": "#/$defs/p", "$defs": {"p": {"properties": members}}}
    result = checker(json.dumps(schema).encode())('{"a":[],"b":2}')
    assert isinstance(result, Misfit)
    assert "b" in {one.path for one in result.problems}


# --- The parts for one value are bounded, with references followed, and without following them for ever

TWO: dict[str, Json] = {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}


@pytest.mark.parametrize(
    ("schema", "counted"),
    [
        ({}, 1),
        ({"properties": {"a": {"type": "integer"}, "b": {"allOf": [{}, {}]}}}, 4),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"properties": {"a": {}, "b": {}}}}}, 4),
        ({"$defs": {"a": {}}, **TWO}, 5),
        ({"$defs": {"b": TWO, "a": {}}, "anyOf": [{"$ref": "#/%24defs/b"}]}, 7),
        ({"allOf": [{"properties": {"a": {}}}, {"additionalProperties": {}}, {"patternProperties": {"a": {}}}]}, 7),
        (
            {"items": {"$ref": "#/$defs/a"}, "contains": {"$ref": "#/$defs/a"}, "$defs": {"a": TWO, "b": {}}},
            MOST_VISITS,
        ),
        ({"$ref": "#"}, MOST_VISITS),
        ({"properties": {"a": {"enum": [{"$ref": "#"}]}}}, 2),
    ],
)
def test_the_parts_for_one_value_are_bounded(schema: dict[str, Json], counted: int) -> None:
    assert visits(schema) == counted


def test_what_takes_exponential_time_is_known_by_its_form() -> None:
    costly = {each.name for each in hostile_schemas() if visits(each.schema) == MOST_VISITS}
    assert {"30 times anyOf", "30 times if", "anyOf, kinds told late", "percent-encoded", "items of itself"} <= costly
    assert not {"members, twice each", "uniqueItems", "not, 60 deep", "5,000 members"} & costly


# --- Work that grows with the arguments, and no further than its bounds


def wide(count: int) -> tuple[str, str]:
    """A schema of many parts with one member each, all about one object that fits none of them."""
    parts: list[Json] = [{"properties": {f"p{i}": {"type": "object"}}, "required": ["q"]} for i in range(count)]
    return json.dumps({"type": "object", "allOf": parts}), json.dumps({f"p{i}": {} for i in range(count)})


def lists_in_alternatives(fitting: int, leaf: Json, count: int) -> tuple[str, str]:
    """Lists in a schema of alternatives that refer to it again: ten that no list fits, then those that may fit."""
    again: dict[str, Json] = {"type": "array", "items": {"$ref": "#/$defs/n"}}
    lists: dict[str, Json] = {f"k{i}": {**again, **({"minItems": 99} if i < 10 else {})} for i in range(10 + fitting)}
    references: list[Json] = [{"$ref": f"#/$defs/{name}"} for name in lists]
    some: Json = {"anyOf": [*references, {"type": "integer"}]}
    schema: Json = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": some, **lists}}
    return json.dumps(schema), json.dumps({"a": [[leaf]] * count})


def work(schema: str, arguments: str) -> int:
    check = checker(schema.encode())
    check('{"a":"x"}')  # the first one imports
    return calls_of(lambda: check(arguments))


def test_many_parts_about_one_object_cost_no_product() -> None:
    """The sum of parts and members: each part is followed to its own members alone."""
    few, many = (work(*wide(count)) for count in (400, 1_600))
    assert many < 5 * few


@pytest.mark.parametrize(("leaf", "count", "most"), [(1, 60_000, 6_000_000), ("x", 25_000, 13_000_000)])
def test_arguments_of_too_many_values_are_judged_and_coerced_with_bounded_work(
    leaf: Json, count: int, most: int
) -> None:
    assert work(*lists_in_alternatives(2, leaf, count)) < most
