"""Drop a tool's optional parameters, for a model that gets them wrong."""

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.tool import ToolSpec

_PLAIN = frozenset({"type", "properties", "required", "additionalProperties", "title", "description", "$defs"})
"""Keywords of schemas whose optional properties can simply be left out."""


def simpler_tool(tool: ToolSpec) -> ToolSpec:
    """The tool without its optional parameters if it only reads; the same tool if there are none.

    Optional arguments of a write often limit it: without them it may do more than was meant.
    """
    schema = msgspec.json.decode(tool.parameters, type=dict[str, object])
    properties, required = schema.get("properties"), schema.get("required", [])
    if tool.effect != "read" or not isinstance(properties, dict) or not isinstance(required, list):
        return tool
    needed = {name: kind for name, kind in properties.items() if name in required}
    if needed == properties or not schema.keys() <= _PLAIN:
        return tool
    return replace(
        tool, parameters=Raw(msgspec.json.encode(schema | {"properties": needed, "additionalProperties": False}))
    )
