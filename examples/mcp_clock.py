"""Tools of an MCP server in a workflow. The server is this file; any command or address does as well.

Run it:  pip install '.[mcp]' and then  python examples/mcp_clock.py
         python examples/mcp_clock.py http://127.0.0.1:8080 "How far is Berlin from UTC?"
"""

import asyncio
import sys

from forge import Workflow, run
from forge.connection import AnyBackend
from forge.mcp import McpTools, Stdio

OFFSETS = {"Berlin": 1, "Tokyo": 9, "Lima": -5}


def serve() -> None:
    """The server's side: what you would have already."""
    from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an extra, and only the server needs it

    server = MCPServer("clock")

    @server.tool()
    def offset(city: str) -> int:
        """Look up the hours between UTC and the time of a city."""
        return OFFSETS[city]

    server.run("stdio")


async def main(question: str, backend: AnyBackend) -> object:
    """Answer the question with the server's tools, which only read."""
    clock = Stdio([sys.executable, __file__, "serve"], tools={"offset": {"effect": "read", "grounded": "city"}})
    async with McpTools({"clock": clock}) as tools:
        workflow = Workflow("clock", tools=tools, required_steps=["clock_offset"], on_text="respond")
        return (await run(workflow, question, backend=backend)).unwrap().value


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        address, *words = sys.argv[1:] or ["local"]
        print(asyncio.run(main(words[0] if words else "How many hours is Tokyo ahead of UTC?", address)))
