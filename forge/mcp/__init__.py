"""MCP: the tools of MCP servers as forge's tools, and a workflow served as an MCP tool. Needs the extra `mcp`."""

from importlib.util import find_spec

from forge.errors import McpError, to_install

if find_spec("mcp") is None:
    raise ImportError(f"MCP needs its SDK, which is not installed; {to_install('mcp')}")

from forge.mcp.protocol import Http, McpServer, Stdio
from forge.mcp.serving import serve
from forge.mcp.source import McpTools

__all__ = ["Http", "McpError", "McpServer", "McpTools", "Stdio", "serve"]
