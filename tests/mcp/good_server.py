"""An MCP server made with the SDK: its tools answer in every form that there is. Over HTTP: `http PORT stream|json`."""

import sys
from typing import Annotated, Literal

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

server = MCPServer("good")


class Item(BaseModel):
    name: str
    children: list["Item"] = []


class Box(BaseModel):
    kind: Literal["box"]
    size: int


class Bag(BaseModel):
    kind: Literal["bag"]
    colour: str


@server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True))
def wipe(path: str) -> str:
    """Wipe a path."""
    return f"{path} is gone"


@server.tool()
def pack(item: Item, into: Annotated[Box | Bag, Field(discriminator="kind")]) -> dict[str, str]:
    """Pack an item."""
    return {"item": item.name, "into": into.kind}


@server.tool()
def picture() -> list:  # type: ignore[type-arg]  # of any kind, so that there is no schema of it
    """A picture with its title."""
    return ["a title", Image(data=b"x" * 3000, format="png")]


@server.tool()
def listed() -> list[str]:
    """A list."""
    return ["one", "two"]


@server.tool()
async def forget(ctx: Context, tool: str) -> str:
    """Remove a tool."""
    server.remove_tool(tool)
    await ctx.session.send_tool_list_changed()
    return "forgotten"


@server.tool()
def refuse(why: str) -> str:
    """Refuse."""
    raise ToolError(f"refused: {why}")


@server.tool()
async def steps(ctx: Context, count: int) -> str:
    """Work in steps."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1}")
    return "worked"


@server.tool()
async def hang() -> str:
    """Never answer."""
    print("hanging on purpose", file=sys.stderr, flush=True)
    await anyio.sleep_forever()
    return ""


@server.tool()
def note(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def large(megabytes: int) -> str:
    """A long text."""
    return "x" * (megabytes << 20)


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run("streamable-http", port=int(sys.argv[2]), json_response=sys.argv[3] == "json")
    else:
        server.run("stdio")
