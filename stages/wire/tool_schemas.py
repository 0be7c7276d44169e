"""The tools' schemas in the forms that backends' grammars support, compiled once, for constrained replies."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import get_args

from msgspec import Raw, Struct

from stages.grounding.calculated_arguments import constraint_of
from stages.schema import Target, project
from stages.tool import ToolSpec
from stages.wire.constrained import Branch, branch
from stages.wire.openai.strict import encode_strict_tools, strict_refusals


class ToolSchemas(Struct, frozen=True, kw_only=True):
    """What requests have of the tools' schemas.

    `calls` are the schemas of calls, by grammar and tool. `strict` are the tools of a request in OpenAI's strict mode,
    `refused` says of each that cannot be strict why.
    """

    calls: Mapping[Target, Mapping[str, Branch]]
    strict: Raw
    refused: tuple[str, ...]


def compiled_schemas(tools: tuple[ToolSpec, ...]) -> ToolSchemas:
    """The schemas of these tools."""
    targets: tuple[Target, ...] = get_args(Target)
    calls = {target: MappingProxyType({tool.name: call_schema(tool, target) for tool in tools}) for target in targets}
    return ToolSchemas(calls=MappingProxyType(calls), strict=encode_strict_tools(tools), refused=strict_refusals(tools))


def call_schema(tool: ToolSpec, target: Target, numbers: Collection[Decimal] = ()) -> Branch:
    """The schema of the tool's call; calculated arguments are made of these numbers, if there are any."""
    return branch(tool, project(constraint_of(tool, numbers), target).schema)
