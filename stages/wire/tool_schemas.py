"""The tools' schemas in the forms that backends' grammars support, compiled once, for constrained replies."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

import msgspec
from msgspec import Raw, Struct

from stages.schema import SchemaTarget, project
from stages.schema.projection import written_or_null
from stages.schema.value import Json
from stages.tool import ToolSpec
from stages.wire.openai.chat import encode_strict_tools, strict_refusals
from stages.wire.wires import Branch, branch


class ToolSchemas(Struct, frozen=True, kw_only=True):
    """The tools' schemas in the forms that requests need.

    `calls` are the schemas of calls, by grammar and tool. `strict` is the `tools` field in OpenAI's strict mode;
    `refused` has a sentence for each tool that cannot be strict.
    """

    calls: Mapping[SchemaTarget, Mapping[str, Branch]]
    strict: Raw
    refused: tuple[str, ...]


def compiled_schemas(tools: tuple[ToolSpec, ...]) -> ToolSchemas:
    """The schemas of these tools."""
    targets: tuple[SchemaTarget, ...] = get_args(SchemaTarget)
    calls = {target: MappingProxyType({tool.name: call_schema(tool, target) for tool in tools}) for target in targets}
    return ToolSchemas(calls=MappingProxyType(calls), strict=encode_strict_tools(tools), refused=strict_refusals(tools))


def call_schema(tool: ToolSpec, target: SchemaTarget) -> Branch:
    """The schema of the tool's call, in which optional arguments are required but may be null."""
    schema: dict[str, Json] = msgspec.json.decode(project(constraint_of(tool), target).schema, type=dict)
    return branch(tool, Raw(msgspec.json.encode(written_or_null(schema))))


_NUMBER = "[0-9]{1,9}([.][0-9]{1,4})?"

CALCULATION = f"^[(]?{_NUMBER}( [+*/-] [(]?{_NUMBER}[)]?){{1,9}}$"
"""The pattern of a calculated argument: two to ten numbers with operators between them."""


def constraint_of(tool: ToolSpec) -> Raw:
    """The tool's parameters for a grammar in which calculated arguments can only be calculations."""
    if not tool.calculated:
        return tool.parameters
    schema: dict[str, Json] = msgspec.json.decode(tool.parameters, type=dict)
    properties = schema.get("properties")
    kinds = properties if isinstance(properties, dict) else {}
    asked: dict[str, Json] = {
        bound.argument: {**kind, "pattern": CALCULATION}
        for bound in tool.calculated
        if isinstance(kind := kinds.get(bound.argument), dict)
    }
    return Raw(msgspec.json.encode({**schema, "properties": {**kinds, **asked}}))
