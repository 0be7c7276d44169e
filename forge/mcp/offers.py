"""Offers: the tools of the servers that were reached, as forge's tools; or what is wrong with what was asked for."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable

from forge.errors import DefinitionError, McpError, ToolFailed
from forge.mcp.definitions import forge_tool
from forge.mcp.naming import local_names
from forge.mcp.results import progress_text
from forge.mcp.session import Session
from forge.tools.decorator import Tool
from forge.tools.definition import ToolOptions
from forge.tools.signature import Returned
from forge.workflow.suggestions import did_you_mean
from stages.schema.value import Json

_UNHEARD = 256
"""Maximum pieces of progress of a call that wait to be heard; more are dropped."""

_log = logging.getLogger("forge")


def offered_tools(sessions: Iterable[Session]) -> tuple[Tool[..., object], ...]:
    """The tools of these sessions, opened in the running event loop; each may be called in any other.

    McpError for servers that are required and were not reached, DefinitionError for unknown tools and options.
    """
    lost = [session for session in sessions if session.lost]
    if missed := [session.lost for session in lost if session.server.required]:
        raise McpError("\n".join(missed))
    for session in lost:
        _log.warning("going on without an MCP server: %s", session.lost)
    open_ones = {session.name: session for session in sessions if not session.lost}
    if wrong := tuple(
        problem for session in open_ones.values() for problem in (*_unknown(session), *_wrong_options(session))
    ):
        raise DefinitionError(wrong)
    loop = asyncio.get_running_loop()
    wanted = {name: [tool for tool in one.tools if _is_wanted(one, tool.name)] for name, one in open_ones.items()}
    names = local_names({name: [tool.name for tool in tools] for name, tools in wanted.items()})
    return tuple(
        forge_tool(tool, names[name][tool.name], open_ones[name].server, _function(open_ones[name], tool.name, loop))
        for name, tools in wanted.items()
        for tool in tools
    )


def _is_wanted(session: Session, tool: str) -> bool:
    return session.server.only is None or tool in session.server.only


def _unknown(session: Session) -> list[str]:
    """A sentence for each tool that the options name and the server does not have."""
    known = [tool.name for tool in session.tools]
    named = dict.fromkeys((*(session.server.only or ()), *session.server.tools))
    there = ", ".join(known) or "none"
    sentence = "server {}: it has no tool {!r}; it has: {}.{}"
    return [sentence.format(session.name, one, there, did_you_mean(one, known)) for one in named if one not in known]


def _wrong_options(session: Session) -> list[str]:
    """A sentence for each option of a tool that there is not."""
    known = ToolOptions.__annotations__
    sentence = "server {}: the tool {} has no option {!r}; there are: {}.{}"
    return [
        sentence.format(session.name, tool, option, ", ".join(known), did_you_mean(option, known))
        for tool, options in session.server.tools.items()
        for option in options
        if option not in known
    ]


def _function(
    session: Session, tool: str, home: asyncio.AbstractEventLoop
) -> Callable[..., AsyncGenerator[object, None]]:
    """The function of a tool: it yields the server's progress, then the result."""

    async def call(**arguments: object) -> AsyncGenerator[object, None]:
        here, heard = asyncio.get_running_loop(), asyncio.Queue[str | None]()

        def tell(text: str) -> None:
            if heard.qsize() < _UNHEARD:
                heard.put_nowait(text)

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            here.call_soon_threadsafe(tell, progress_text(progress, total, message))

        answer = _submitted(session.call(tool, arguments, hear), home)
        answer.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            while (text := await heard.get()) is not None:
                yield text
            yield Returned(answer.result())
        finally:
            answer.cancel()

    return call


def _submitted(work: Coroutine[None, None, Json], home: asyncio.AbstractEventLoop) -> asyncio.Future[Json]:
    """The work, done in the loop of the sessions. ToolFailed where that has ended."""
    if not home.is_running():
        work.close()
        raise ToolFailed("the sessions with the MCP servers are closed.")
    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))
