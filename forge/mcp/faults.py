"""Faults of calls to MCP servers: what each means for the call, as an exception of its tool."""

from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT

from forge.errors import ToolFailed, ToolOutcomeUnknown

UNREADABLE = -32099
"""The code by which our transports tell a call that the server's answer to it cannot be read."""

UNREACHABLE = -32098
"""The code by which our transports tell a call that it has not reached the server."""


class McpToolError(Exception):
    """What a server says went wrong in a call: the model may correct it."""


def fault_of(code: int, message: str, server: str, seconds: float, words: str) -> Exception:
    """The exception for a call that the server did not answer with a result. `words` are the server's last.

    Where the call may have taken effect, it is a ToolOutcomeUnknown: what that means depends on the tool.
    """
    who, said = f"the MCP server {server}", f" ({words})" if words else ""
    if code == REQUEST_TIMEOUT:
        return ToolOutcomeUnknown(f"{who} did not answer within {seconds:g} seconds{said}")
    if code == CONNECTION_CLOSED:
        return ToolOutcomeUnknown(f"the connection to {who} ended before it answered ({words or message})")
    if code in (UNREADABLE, PARSE_ERROR):
        return ToolFailed(f"{who} has answered, but its answer cannot be read: {message}.")
    if code == UNREACHABLE:
        return ToolFailed(f"{who} cannot be reached: {message}.")
    return McpToolError(f"{message}{said}")
