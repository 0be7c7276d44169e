"""MCP: the tools of MCP servers as forge's tools, and a workflow served as an MCP tool. Needs the extra `mcp`."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from forge.errors import McpError
    from forge.mcp.protocol import Http, McpServer, Stdio
    from forge.mcp.serving import serve
    from forge.mcp.source import McpTools

if find_spec("mcp") is None:
    from forge.errors import to_install

    raise ImportError(f"MCP needs its SDK, which is not installed; {to_install('mcp')}")

__all__ = ["Http", "McpError", "McpServer", "McpTools", "Stdio", "serve"]

if not TYPE_CHECKING:
    __getattr__ = later(
        __name__,
        {
            "forge.errors": ("McpError",),
            "forge.mcp.protocol": ("Http", "McpServer", "Stdio"),
            "forge.mcp.serving": ("serve",),
            "forge.mcp.source": ("McpTools",),
        },
    )
