"""The tools that a server listed when its session began, and which of them it has changed since."""

import asyncio
import logging
from contextlib import suppress

from mcp.client import Client, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams, Tool, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from forge.errors import McpError

_PAGES = 100
"""Maximum pages of a list of tools."""

_TOOLS = 1_000
"""Maximum tools of one server."""

_log = logging.getLogger("forge")


class Listing:
    """The tools of the server of that name, as they were at first. What has changed since must not be called."""

    def __init__(self, server: str) -> None:
        self.tools: tuple[Tool, ...] = ()
        self._server = server
        self._changed = frozenset[str]()
        self._stale = False
        """Whether the tools may have changed since they were listed."""
        self._untold = False
        """Whether nobody says when they change: they are then listed again before each call."""
        self._listing = asyncio.Lock()

    async def begin(self, client: Client) -> None:
        """List them for the first time; of a server that was started again, compare them before the next call."""
        if self.tools:
            self._stale = True
        else:
            self.tools = await _listed(client)

    async def notice(self, message: IncomingMessage) -> None:
        """Take note if the server says that its tools have changed; one of the newest protocol has to be asked to."""
        if isinstance(message, ToolListChangedNotification):
            self._stale = True

    async def watch(self, client: Client) -> None:
        """Ask a server of the newest protocol to say when its tools change, and take note."""
        offers = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (offers and offers.list_changed):
            return
        # A RuntimeError of the SDK's: the server no longer says so.
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._stale = True
        self._untold = self._stale = True

    async def is_changed(self, client: Client, tool: str) -> bool:
        """Whether the tool is another now, or gone. MCPError or ValidationError where the server does not say."""
        async with self._listing:
            if self._stale:
                now = {one.name: _definition(one) for one in await _listed(client)}
                self._stale = self._untold
                changed = frozenset(one.name for one in self.tools if now.get(one.name) != _definition(one))
                if more := sorted(changed - self._changed):
                    text = "the MCP server %s has changed or removed tools that are in use: %s"
                    _log.warning(text, self._server, ", ".join(more))
                self._changed = changed
        return tool in self._changed


def _definition(tool: Tool) -> tuple[object, ...]:
    return tool.description, tool.input_schema, tool.annotations


async def _listed(client: Client) -> tuple[Tool, ...]:
    """All tools of the server; of several with one name the first."""
    found: dict[str, Tool] = {}
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            found.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if len(found) > _TOOLS:
            raise McpError(f"it has more than {_TOOLS:,} tools")
        if not cursor:
            return tuple(found.values())
    raise McpError(f"its list of tools has more than {_PAGES} pages")
