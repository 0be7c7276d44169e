"""The parts for one value are bounded, with references followed, and without following them for ever."""

import pytest

from stages.schema.judging import MOST_VISITS, visits
from stages.schema.value import Json
from tests.hostile_schemas import hostile_schemas

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
        ({"anyOf": [{"$ref": "#named"}], "$defs": {"a": {"$anchor": "named", "allOf": [{}, {}]}}}, 5),
        ({"properties": {"a": {"enum": [{"$ref": "#"}]}}}, 2),
    ],
)
def test_the_parts_for_one_value_are_bounded(schema: dict[str, Json], counted: int) -> None:
    assert visits(schema) == counted


def test_what_takes_exponential_time_is_known_by_its_form() -> None:
    costly = {each.name for each in hostile_schemas() if visits(each.schema) == MOST_VISITS}
    assert {"30 times anyOf", "30 times if", "30 times unevaluatedProperties", "anyOf, kinds told late"} <= costly
    assert {"$dynamicRef", "$recursiveRef", "anchors", "percent-encoded", "items of itself"} <= costly
    assert not {"members, twice each", "uniqueItems", "not, 60 deep", "5,000 members"} & costly
