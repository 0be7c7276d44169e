"""Schemas that cannot be compiled: what is left of them can be, and still checks what it can."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.schema import Fits, Misfit, checker
from stages.schema.check import readable_schema

FAR = {"$ref": "https://example.com/schema.json"}

_keywords = st.sampled_from(
    ["type", "properties", "required", "items", "$ref", "$defs", "A", "pattern", "oneOf", "enum"]
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["object", "string", "nope", "#/$defs/A", "("]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keywords, inner, max_size=4),
    max_leaves=12,
)


@given(_json)
def test_whatever_the_schema_arguments_can_be_checked_against_what_is_left(schema: object) -> None:
    assert isinstance(checker(readable_schema(msgspec.json.encode(schema)))("{}"), Fits | Misfit)


@pytest.mark.parametrize("text", [b"", b"[]", b"[" * 200])
def test_of_what_is_no_schema_an_object_is_left(text: bytes) -> None:
    check = checker(readable_schema(text))
    assert isinstance(check('{"any": 1}'), Fits)
    assert isinstance(check("[]"), Misfit)


def test_a_schema_that_can_be_read_stays_as_it_is() -> None:
    schema = msgspec.json.encode({"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}})
    assert bytes(readable_schema(schema)) == schema


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"n": 1, "far": {"any": "thing"}}, True),
        ({"n": "one"}, False),
        ({"far": 1}, False),
        ({"n": 1, "other": 1}, False),
        ({"n": 1, "shared": "text"}, False),
    ],
)
def test_what_can_be_read_is_checked(arguments: object, fits: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "far": FAR, "shared": {"$ref": "#/$defs/N"}},
        "required": ["n"],
        "additionalProperties": False,
        "$defs": {"N": {"type": "number"}},
    }
    check = checker(readable_schema(msgspec.json.encode(schema)))
    assert isinstance(check(msgspec.json.encode(arguments).decode()), Fits) == fits
