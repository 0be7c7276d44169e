"""From the tools that a server lists to forge's tools: their schemas, and the meaning of their hints."""

from collections.abc import AsyncGenerator, Callable

import msgspec
from mcp_types import Tool as ListedTool
from mcp_types import ToolAnnotations
from msgspec import Raw
from msgspec.structs import replace

from forge.mcp.protocol import McpServer
from forge.tools.definition import Explicit, Signature, Tool, ToolOptions, as_it_is, tell_unchecked, tool
from stages.repair.decoding import sound
from stages.schema.check import readable


def forge_tool(
    listed: ListedTool, name: str, server: McpServer, function: Callable[..., AsyncGenerator[object, None]]
) -> Tool[..., object]:
    """The tool under that name. The model sees the schema unchanged; it is checked as far as forge can read it."""
    schema = Raw(msgspec.json.encode(listed.input_schema))
    checked = readable(schema)
    tell_unchecked(name, checked)
    # A schema that is not an object with properties would be useless to a model.
    shown = schema if isinstance(listed.input_schema.get("properties", {}), dict) else checked
    signature = Signature(name=name, description=sound(listed.description or listed.title or ""), parameters=shown)
    own = server.tools.get(listed.name, {})
    options: ToolOptions = {**hinted(listed.annotations or ToolAnnotations(), trusted=server.trust_hints), **own}
    made = tool(name=name, **options)(Explicit(function, signature, as_it_is))
    spec = made.spec if bytes(checked) == bytes(shown) else replace(made.spec, checked=checked)
    return Tool(made.function, spec, made.problems)


def hinted(hints: ToolAnnotations, *, trusted: bool) -> ToolOptions:
    """The effect of the server's hints; untrusted hints can only add caution.

    https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations
    """
    reads = hints.read_only_hint is True
    if trusted and reads:
        return {"effect": "read"}
    options: ToolOptions = {"approval": True} if hints.destructive_hint is True else {}
    return {**options, "idempotent": True} if trusted and hints.idempotent_hint is True else options
