"""Optional members, written or null: what is accepted then means what it meant when they could be left out."""

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.schema import Fits, checker
from stages.schema.projection import MOST_OPTIONAL, written_or_null
from stages.schema.value import Json

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
