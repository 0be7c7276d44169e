"""Tools without their optional parameters."""

import json

import msgspec
import pytest
from msgspec import Raw

from stages.offer import simpler_tool
from stages.tool import ToolEffect, ToolSpec


def tool(effect: ToolEffect = "read", **schema: object) -> ToolSpec:
    whole = {
        "type": "object",
        "properties": {"what": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["what"],
    }
    return ToolSpec(name="t", description="", parameters=Raw(json.dumps(whole | schema).encode()), effect=effect)


def test_what_may_be_left_out_is_left_out_and_refused() -> None:
    assert msgspec.json.decode(simpler_tool(tool()).parameters) == {
        "type": "object",
        "properties": {"what": {"type": "string"}},
        "required": ["what"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "as_it_is",
    [
        tool("write"),
        tool("terminal"),
        tool(required=["what", "limit"]),
        tool(anyOf=[{"required": ["limit"]}]),
        tool(minProperties=2),
    ],
)
def test_a_tool_stays_as_it_is_where_less_may_mean_more_or_no_call_would_fit(as_it_is: ToolSpec) -> None:
    assert simpler_tool(as_it_is) is as_it_is
