"""BFCL's functions as tools of forge: their names without points, their parameters as JSON Schema."""

from collections.abc import Callable, Mapping
from typing import Any

from forge.tools.decorator import Tool
from forge.tools.definition import ToolDef


def function_tool(described: Mapping[str, Any], function: Callable[..., object]) -> Tool[..., object]:
    """The tool of a function as BFCL describes it."""
    return ToolDef(
        name=tool_name(str(described["name"])),
        description=str(described.get("description", "")),
        parameters=_json_schema(described["parameters"]),
        function=function,
    )


def tool_name(function: str) -> str:
    """The name without points, which no protocol of tool calls allows."""
    return function.replace(".", "_")


_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
"""Types of BFCL that JSON Schema names otherwise."""


def _json_schema(schema: Any) -> Any:
    match schema:
        case dict():
            made = {key: _json_schema(value) for key, value in schema.items() if key != "optional"}
            kind = made.get("type")
            if isinstance(kind, str) and kind in _TYPES:
                made |= {"type": _TYPES[kind]}
                if made["type"] is None:
                    del made["type"]
            return made
        case list():
            return [_json_schema(one) for one in schema]
        case _:
            return schema
