"""A workflow served as an MCP tool."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from secrets import token_hex
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    InputRequests,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from returns.result import Result

from forge._installation import VERSION
from forge.backends import reached
from forge.connection import AnyBackend, OpenBackend
from forge.errors import ForgeError, checked_options
from forge.mcp.protocol import ANSWER, MESSAGE, answer_in, failed, form_of, question_of, result_of, served_tool
from forge.mcp.streams import byte_streams
from forge.outcome import Finished, Halted
from forge.runtime.runs import follow, run
from forge.runtime.watching import Watching
from forge.workflow.workflow import Workflow
from stages import events
from stages.state import State
from stages.wire.deltas import Delta

_UNTOLD = 256
"""Maximum progress messages to queue; more are dropped."""

_GRACE = 10.0
"""Seconds for runs to end after the client has gone."""

_MAX_QUESTIONS = 8
"""Maximum questions of one call to ask the client's user; a further one is returned as the result."""

_MAX_WAITING = 100
"""Maximum questions to keep waiting for answers; the oldest are dropped."""

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
        self._waiting = OrderedDict[str, Result[Finished, Halted]]()
        self._backend, self._stack = backend, stack
        self._held: OpenBackend | None = None
        self._connecting = asyncio.Lock()

    async def listed(self, context: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:  # noqa: ARG002
        """The list of the one tool."""
        return ListToolsResult(tools=[self._tool])

    async def call(self, context: _Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Run the workflow for the message, or continue with the answer to its question."""
        try:
            if params.request_state is not None:
                ended = self._waiting.pop(params.request_state, None)
                asked = question_of(ended) if ended is not None else None
                if ended is None or asked is None:
                    return failed("the question is not known any more; call again, with all that is needed to know")
                form = (params.input_responses or {}).get(ANSWER)
                said = answer_in(form) if isinstance(form, ElicitResult) else None
                return result_of(ended) if said is None else await self._worked(context, said, asked[1])
            message = (params.arguments or {}).get(MESSAGE)
            if params.name != self._tool.name or not isinstance(message, str) or not message.strip():
                return failed(f"the only tool is {self._tool.name}; it takes a text, {MESSAGE}, which is not empty")
            return await self._worked(context, message, None)
        except ForgeError as error:
            return failed(str(error))

    async def _worked(self, context: _Context, said: str, before: State | None) -> CallToolResult | InputRequiredResult:
        """The result of a run, continued as long as the user answers its questions."""
        able = context.session.client_capabilities
        for left in reversed(range(_MAX_QUESTIONS + 1)):
            ended = await self._run(context.session, said, before)
            asked = question_of(ended)
            if asked is None or not left or able is None or able.elicitation is None:
                break
            form = form_of(asked[0])
            if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                key = token_hex(16)  # identifies the waiting run in the client's answer
                self._waiting[key] = ended
                if len(self._waiting) > _MAX_WAITING:
                    self._waiting.popitem(last=False)
                requests: InputRequests = {ANSWER: ElicitRequest(params=form)}
                return InputRequiredResult(input_requests=requests, request_state=key)
            try:  # ask the client's user while the call waits
                session = context.session
                answer = answer_in(await session.elicit_form(form.message, form.requested_schema, context.request_id))
            except (MCPError, ValidationError):
                break
            if answer is None:
                break
            said, before = answer, asked[1]
        return result_of(ended)

    async def _run(self, session: ServerSession, said: str, before: State | None) -> Result[Finished, Halted]:
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
        if before is None:
            work = run(self._workflow, said, backend=backend, prompt_vars=self._prompt_vars, **told)
        else:
            work = follow(self._workflow, before, said, backend=backend, **told)
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
