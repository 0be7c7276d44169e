"""Tools for OpenAI's strict mode, which keeps the arguments of native calls to their schemas."""

import msgspec
from msgspec import Raw

from stages.schema import project
from stages.tool import ToolSpec
from stages.wire.openai.chat import WireSpec, WireTool


def encode_strict_tools(tools: tuple[ToolSpec, ...]) -> Raw:
    """The `tools` of a request, each strict if its schema can be; the others as `strict_refusals` names them."""
    return Raw(msgspec.json.encode([WireTool(function=_spec(tool)) for tool in tools]))


def _spec(tool: ToolSpec) -> WireSpec:
    projected = project(tool.parameters, "openai-strict")
    if projected.refused:
        return WireSpec(name=tool.name, description=tool.description, parameters=tool.parameters)
    return WireSpec(name=tool.name, description=tool.description, parameters=projected.schema, strict=True)


def strict_refusals(tools: tuple[ToolSpec, ...]) -> tuple[str, ...]:
    """The tools whose schema has no form in the strict mode, and why; a sentence each."""
    reasons = ((tool.name, project(tool.parameters, "openai-strict").refused) for tool in tools)
    return tuple(f"{name} cannot be strict: {reason}" for name, reason in reasons if reason)
