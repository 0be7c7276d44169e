"""`allOf` merged into one part: what is left demands the same or less, and says what it lost."""

import pytest

from stages.schema.projection import merge_all_of
from stages.schema.value import Json

ROOT: dict[str, Json] = {
    "$defs": {
        "Named": {"properties": {"name": {"type": "string"}}, "required": ["name"]},
        "Loop": {"allOf": [{"$ref": "#/$defs/Loop"}]},
    }
}
INTEGER: dict[str, Json] = {"type": "integer"}


@pytest.mark.parametrize(
    ("part", "merged", "left_out"),
    [
        ({"type": "object"}, {"type": "object"}, []),
        ({"allOf": [INTEGER, {"minimum": 1}]}, {"type": "integer", "minimum": 1}, []),
        ({"minimum": 0, "allOf": [{"minimum": 1}]}, {"minimum": 0}, ["minimum"]),
        ({"title": "a", "allOf": [{"title": "b"}]}, {"title": "a"}, []),
        ({"required": ["a"], "allOf": [{"required": ["b", "a"]}]}, {"required": ["a", "b"]}, []),
        (
            {"properties": {"a": INTEGER}, "allOf": [{"properties": {"a": {"minimum": 1}, "b": True}}]},
            {"properties": {"a": {"allOf": [INTEGER, {"minimum": 1}]}, "b": True}},
            [],
        ),
        (
            {"allOf": [{"$ref": "#/$defs/Named"}]},
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
            [],
        ),
        ({"allOf": [True]}, {}, []),
        ({"allOf": [False]}, {}, ["allOf"]),
        ({"allOf": [{"$ref": "https://example.com/schema"}]}, {}, ["allOf"]),
        ({"allOf": [{"$ref": "#/$defs/Loop"}]}, {}, ["allOf"]),
    ],
)
def test_merged(part: dict[str, Json], merged: dict[str, Json], left_out: list[str]) -> None:
    assert merge_all_of(part, ROOT) == (merged, left_out)
