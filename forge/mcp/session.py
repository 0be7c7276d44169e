"""A session with one server: opened and closed in a task of its own, its faults those of single calls."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from mcp.client import Client, IncomingMessage
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from forge.errors import McpError, ToolFailed
from forge.masking import Hidden
from forge.mcp.faults import McpToolError, fault_of
from forge.mcp.http import HttpTransport
from forge.mcp.results import value_of
from forge.mcp.servers import McpServer, Stdio
from forge.mcp.stdio import StdioTransport
from stages.schema.value import Json

_PAGES = 100
"""Maximum pages of a list of tools."""

_log = logging.getLogger("forge")


class Session:
    """A session with the server of that name. `tools` are those that it listed when it was opened."""

    def __init__(self, name: str, server: McpServer) -> None:
        self.tools: tuple[Tool, ...] = ()
        self.lost = ""
        self.name, self.server = name, server
        self._hidden = Hidden(server.secrets)
        self._transport = StdioTransport(server) if isinstance(server, Stdio) else HttpTransport(server)
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready, self._stop = asyncio.Event(), asyncio.Event()
        self._fault: BaseException | None = None
        self._stale = False
        """Whether the tools may have changed since they were listed."""
        self._untold = False
        """Whether nobody will say when they change, so that they are compared before each call."""
        self._changed = frozenset[str]()
        self._checking = asyncio.Lock()

    async def open(self) -> None:
        """Connect, and have the tools listed; `lost` says why that failed, or took too long, if it did."""
        self._task = asyncio.create_task(self._keep_open(), name=f"forge MCP server {self.name}")
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            self.lost = self._masked(f"{self.name}: {await self._why()}")

    async def close(self) -> None:
        """Disconnect, and stop the program if it is one; some seconds at most."""
        if self._task is not None:
            self._stop.set()
            if not self._ready.is_set():
                self._task.cancel()
            await asyncio.wait({self._task})

    async def call(self, tool: str, arguments: Mapping[str, object], hear: ProgressFnT) -> Json:
        """What the tool answers. Raises what a tool raises: McpToolError, ToolFailed, ToolOutcomeUnknown."""
        client = await self._ready_for(tool)
        asked = CallToolRequest(params=CallToolRequestParams(name=tool, arguments={**arguments}))
        seconds = self.server.timeout
        try:
            # Not `call_tool`, which checks results against the server's own schema with patterns of unbounded time.
            result = await client.session.send_request(asked, CallToolResult, seconds, progress_callback=hear)
        except MCPError as error:
            fault = fault_of(error, self.name, seconds, await self._transport.last_words())
            raise type(fault)(self._masked(str(fault))) from None
        except ValidationError:
            raise ToolFailed(f"the MCP server {self.name} answered with what is not the result of a tool.") from None
        if result.is_error:
            raise McpToolError(self._masked(f"{value_of(result)}"))
        return value_of(result)

    async def _ready_for(self, tool: str) -> Client:
        """The client. ToolFailed where the tool cannot be called, so that nothing has happened."""
        if self._client is None or self._task is None or self._task.done() or not self._transport.open:
            words = self._masked(await self._transport.last_words())
            raise ToolFailed(f"the MCP server {self.name} is gone{f' ({words})' if words else ''}.")
        try:
            await self._recheck(self._client)
        except (MCPError, McpError, ValidationError) as error:
            what = self._masked(_innermost(error))
            raise ToolFailed(f"the MCP server {self.name} cannot be asked which tools it has now: {what}.") from None
        if tool in self._changed:
            raise ToolFailed(_CHANGED.format(tool=tool, server=self.name))
        return self._client

    async def _keep_open(self) -> None:
        """The whole life of the session, in one task: the SDK's task groups belong to the task that entered them."""
        try:
            async with asyncio.timeout(self.server.connect_timeout) as limit, self._new_client() as client:
                self.tools = await self._listed(client)
                limit.reschedule(None)
                self._client = client
                self._ready.set()
                await self._until_stopped(client)
        except Exception as error:  # noqa: BLE001 - whatever fails here is this server's fault, and no other's
            self._fault = error

    def _new_client(self) -> Client:
        return Client(self._transport, message_handler=self._notice, client_info=_FORGE, cache=None)

    async def _until_stopped(self, client: Client) -> None:
        """Wait to be stopped; meanwhile be told of changes of the tools, where that has to be asked for."""
        offers = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (offers and offers.list_changed):
            await self._stop.wait()
            return
        watching = asyncio.create_task(self._watch(client))
        await self._stop.wait()
        watching.cancel()
        await asyncio.wait({watching})

    async def _watch(self, client: Client) -> None:
        # A RuntimeError of the SDK's: the server has ended what it was to tell by.
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._stale = True
        self._untold = self._stale = True

    async def _notice(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._stale = True

    async def _recheck(self, client: Client) -> None:
        """Where the server says that its tools have changed, find out which of those that are in use have."""
        async with self._checking:
            if not self._stale:
                return
            self._stale = self._untold
            try:
                now = {tool.name: _definition(tool) for tool in await self._listed(client)}
            except BaseException:
                self._stale = True
                raise
            changed = frozenset(tool.name for tool in self.tools if now.get(tool.name) != _definition(tool))
            if changed - self._changed:
                told = ", ".join(sorted(changed - self._changed))
                _log.warning("the MCP server %s has changed or removed tools that are in use: %s", self.name, told)
            self._changed = changed

    async def _listed(self, client: Client) -> tuple[Tool, ...]:
        """All its tools; of several of one name the first."""
        found: dict[str, Tool] = {}
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            for tool in page.tools:
                found.setdefault(tool.name, tool)
            cursor = page.next_cursor
            if not cursor:
                return tuple(found.values())
        raise McpError(f"its list of tools has more than {_PAGES} pages")

    async def _why(self) -> str:
        """Why it could not be opened."""
        match self._fault:
            case TimeoutError():
                what = f"did not answer within {self.server.connect_timeout:g} seconds (connect_timeout)"
            case FileNotFoundError() if isinstance(self.server, Stdio):
                return f"there is no program {self.server.command[0]!r}, or no folder cwd"
            case None:
                what = "was cancelled"
            case fault:
                what = _innermost(fault)
        words = await self._transport.last_words()
        return f"{what}{f' ({words})' if words else ''}"

    def _masked(self, text: str) -> str:
        return self._hidden.without(text)


_FORGE = Implementation(name="forge", version="0")

_CHANGED = (
    "the MCP server {server} has changed or removed its tool {tool} since this work began, so it is not called. "
    "Start again to use its tools as they are now."
)


def _definition(tool: Tool) -> tuple[object, ...]:
    return tool.description, tool.input_schema, tool.annotations


def _innermost(error: BaseException) -> str:
    """What is wrong, out of the groups in which task groups raise it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
