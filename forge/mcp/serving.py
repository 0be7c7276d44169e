"""A workflow served as an MCP tool."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from returns.result import Result

from forge._installation import VERSION
from forge.backends.routing import reached
from forge.connection import AnyBackend, OpenBackend
from forge.errors import ForgeError, checked_options
from forge.mcp.protocol import ARGUMENT, error_result, served_tool, tool_result
from forge.mcp.streams import byte_streams
from forge.outcome import Finished, Halted
from forge.runtime.runs import run
from forge.runtime.watching import Watching
from forge.workflow.workflow import Workflow
from stages import events
from stages.wire.deltas import Delta

_UNTOLD = 256
"""Maximum progress messages to queue; more are dropped."""

_GRACE = 10.0
"""Seconds for runs to end after the client has gone."""

_Context = ServerRequestContext[dict[str, Any], Any]


@checked_options
async def serve(
    workflow: Workflow,
    *,
    backend: AnyBackend,
    source: int = 0,
    target: int = 1,
    description: str = "",
    prompt_vars: Mapping[str, str] | None = None,
) -> None:
    """Serve the workflow to a client that writes to descriptor `source` and reads `target`, until it closes.

    Each call is a run with progress notifications, which the client can cancel. The backend is connected on the first
    call. If it cannot be reached, or a run halts, the result is an error with the reason. Nothing else may write to
    `target` meanwhile.
    """
    async with AsyncExitStack() as stack:
        calls = _Calls(workflow, backend, stack, prompt_vars or {}, description)
        server = Server("forge", version=VERSION, on_list_tools=calls.listed, on_call_tool=calls.call)
        async with byte_streams(source, target) as (from_client, to_client):
            await server.run(from_client, to_client, server.create_initialization_options())
        if calls.running:  # cancelled runs, for a limited time
            await asyncio.wait(calls.running, timeout=_GRACE)


class _Calls:
    """Handles the client's requests with runs of the workflow; the backend is connected when first needed."""

    def __init__(
        self,
        workflow: Workflow,
        backend: AnyBackend,
        stack: AsyncExitStack,
        prompt_vars: Mapping[str, str],
        description: str,
    ) -> None:
        self.running = set[asyncio.Task[Result[Finished, Halted]]]()
        self._workflow, self._prompt_vars = workflow, prompt_vars
        self._tool = served_tool(workflow, description)
        self._backend, self._stack = backend, stack
        self._held: OpenBackend | None = None
        self._connecting = asyncio.Lock()

    async def listed(self, context: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG002
        """The list of the one tool."""
        return ListToolsResult(tools=[self._tool])

    async def call(self, context: _Context, params: CallToolRequestParams) -> CallToolResult:
        """Run the workflow for the message."""
        message = (params.arguments or {}).get(ARGUMENT)
        if params.name != self._tool.name or not isinstance(message, str) or not message.strip():
            return error_result(f"the only tool is {self._tool.name}; it takes a text, {ARGUMENT}, which is not empty")
        try:
            return tool_result(await self._run(context.session, message))
        except ForgeError as error:
            return error_result(str(error))

    async def _run(self, session: ServerSession, message: str) -> Result[Finished, Halted]:
        """The end of a run. When cancelled, returns at once, while the run may take longer to stop."""
        async with self._connecting:  # if it cannot be reached, the next call tries again
            if self._held is None:
                self._held = OpenBackend(await self._stack.enter_async_context(reached(self._backend).connect()))
        backend = self._held
        untold, cancel = asyncio.Queue[str](_UNTOLD), asyncio.Event()

        def watch(stamped: events.Stamped) -> None:
            with suppress(asyncio.QueueFull):
                if not stamped.parent and (text := _progress(stamped.event)):
                    untold.put_nowait(text)

        told: Watching = {"on_event": watch, "cancel": cancel}
        work = run(self._workflow, message, backend=backend, prompt_vars=self._prompt_vars, **told)
        running = asyncio.ensure_future(work)
        self.running.add(running)
        running.add_done_callback(self.running.discard)
        telling = asyncio.create_task(_tell(untold, session))
        try:
            return await asyncio.shield(running)
        finally:
            cancel.set()
            telling.cancel()


async def _tell(untold: asyncio.Queue[str], session: ServerSession) -> None:
    """Send progress to the client; the total is unknown."""
    done = 0
    with suppress(MCPError):
        while True:
            text = await untold.get()
            done += 1
            await session.report_progress(done, None, text)


def _progress(event: events.Event | Delta) -> str:
    """The progress message for an event; empty for none."""
    match event:
        case events.TurnStarted(turn=turn):
            return f"asks the model, {turn}"
        case events.CallsAccepted(calls=calls):
            return f"runs {', '.join(call.name for call in calls)}"
        case events.ToolProgressed(name=name, text=text):
            return f"{name}: {text}"
        case _:
            return ""
