"""MCP: the tools of MCP servers as forge's tools, and a workflow served as an MCP tool. Needs the extra `mcp`."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from forge.errors import McpError
    from forge.mcp.servers import Http, McpServer, Stdio
    from forge.mcp.serving import serve
    from forge.mcp.source import McpTools

__all__ = ["Http", "McpError", "McpServer", "McpTools", "Stdio", "serve"]

if not TYPE_CHECKING:
    __getattr__ = later(
        __name__,
        {
            "forge.errors": ("McpError",),
            "forge.mcp.servers": ("Http", "McpServer", "Stdio"),
            "forge.mcp.serving": ("serve",),
            "forge.mcp.source": ("McpTools",),
        },
    )
