"""A session with one server: opened and closed in its own task; failures only affect single calls."""

import asyncio
import logging
from collections.abc import Mapping

from mcp.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, Implementation, Tool
from pydantic import ValidationError

from forge._installation import VERSION
from forge.errors import McpError, McpToolError, ToolFailed, quantity
from forge.masking import Hidden
from forge.mcp.protocol import Listing, McpServer, Stdio, call_error, content_of
from forge.mcp.transports import HttpTransport, StdioTransport
from forge.observation import McpCalled, Observed
from stages.schema.value import Json


class McpSession:
    """A session with the server of that name. `lost` says why it could not be opened, or is empty."""

    def __init__(self, name: str, server: McpServer) -> None:
        self.name, self.server, self.lost = name, server, ""
        self._hidden = Hidden(server.secrets)
        self._restarts = server.restarts if isinstance(server, Stdio) else 0
        self._starting = asyncio.Lock()
        self._transport = self._new_transport()
        self._listing = Listing(name)
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready, self._stop = asyncio.Event(), asyncio.Event()
        self._fault: BaseException | None = None

    def _new_transport(self) -> StdioTransport | HttpTransport:
        return StdioTransport(self.server) if isinstance(self.server, Stdio) else HttpTransport(self.server)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The server's tools when the session was opened."""
        return self._listing.tools

    async def open(self) -> None:
        """Connect and list the tools; sets `lost` if that fails or takes too long."""
        self._task = asyncio.create_task(self._keep_open(), name=f"forge MCP server {self.name}")
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            self.lost = f"{self.name}: {self._masked(await self._why())}"

    async def close(self) -> None:
        """Disconnect, and stop the program if there is one; takes some seconds at most."""
        if self._task is not None:
            self._stop.set()
            if not self._ready.is_set():
                self._task.cancel()
            await asyncio.wait({self._task})

    async def call(self, tool: str, arguments: Mapping[str, object], hear: ProgressFnT) -> Json:
        """The tool's result. Raises McpToolError, ToolFailed or ToolOutcomeUnknown, as a tool would."""
        client = await self._ready_for(tool)
        asked = CallToolRequest(params=CallToolRequestParams(name=tool, arguments={**arguments}))
        seconds = self.server.timeout
        transport = "pipe" if isinstance(self.server, Stdio) else "tcp"
        # Attributes for the existing span of the tool call; the SDK creates one for the request and propagates the
        # trace.
        with Observed(McpCalled(protocol=client.protocol_version, transport=transport)):
            pass
        try:
            # Not `call_tool`, which checks results against the server's own schema, whose patterns may take unbounded
            # time.
            result = await client.session.send_request(asked, CallToolResult, seconds, progress_callback=hear)
        except MCPError as error:
            words = self._masked(await self._transport.last_words())
            raise call_error(error.code, self._masked(error.message), self.name, seconds, words) from None
        except ValidationError:
            raise ToolFailed(f"the MCP server {self.name} answered with what is not the result of a tool.") from None
        if result.is_error:
            raise McpToolError(self._masked(f"{content_of(result)}"))
        return content_of(result)

    async def _ready_for(self, tool: str) -> Client:
        """The client. ToolFailed if the tool cannot be called, so that nothing has happened."""
        async with self._starting:
            if not self._open and self._restarts and not self._stop.is_set():
                await self._start_again()
        if self._client is None or not self._open:
            words = self._masked(await self._transport.last_words())
            raise ToolFailed(f"the MCP server {self.name} is gone{f' ({words})' if words else ''}.")
        try:
            async with asyncio.timeout(self.server.timeout):
                changed = await self._listing.is_changed(self._client, tool)
        except (MCPError, McpError, ValidationError, TimeoutError) as error:
            what = self._masked(_innermost(error))
            raise ToolFailed(f"the MCP server {self.name} cannot be asked which tools it has now: {what}.") from None
        if changed:
            raise ToolFailed(_CHANGED.format(tool=tool, server=self.name))
        return self._client

    @property
    def _open(self) -> bool:
        return self._task is not None and not self._task.done() and self._transport.open

    async def _start_again(self) -> None:
        """Restart a program that has exited; its tools are compared with the earlier ones."""
        words = self._masked(await self._transport.last_words())
        _log.warning("the MCP server %s is started again%s", self.name, f": {words}" if words else "")
        await self.close()
        self._restarts -= 1
        self._client, self._fault, self._transport = None, None, self._new_transport()
        self._ready, self._stop = asyncio.Event(), asyncio.Event()
        await self.open()

    async def _keep_open(self) -> None:
        """The whole session in one task, because a task group must be left by the task that entered it."""
        about = Implementation(name="forge", version=VERSION)
        new = Client(self._transport, message_handler=self._listing.notice, client_info=about, cache=None)
        try:
            async with asyncio.timeout(self.server.connect_timeout) as limit, new as client:
                await self._listing.begin(client)
                limit.reschedule(None)
                self._client = client
                watching = asyncio.create_task(self._listing.watch(client))
                self._ready.set()
                await self._stop.wait()
                watching.cancel()
                await asyncio.wait({watching})
        except Exception as error:  # noqa: BLE001 - whatever fails here is this server's fault, and no other's
            self._fault = error

    async def _why(self) -> str:
        """Why the session could not be opened."""
        match self._fault:
            case TimeoutError():
                what = f"did not answer within {quantity(self.server.connect_timeout, 'second')} (connect_timeout)"
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


_log = logging.getLogger("forge")

_CHANGED = (
    "the MCP server {server} has changed or removed its tool {tool} since this work began, so it is not called. "
    "Start again to use its tools as they are now."
)


def _innermost(error: BaseException) -> str:
    """The message of the first leaf of an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
