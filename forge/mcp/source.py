"""McpTools: the tools of MCP servers, for as long as the sessions with the servers are open."""

import asyncio
import atexit
import logging
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType

from forge.errors import DefinitionError, ForgeError
from forge.mcp.offers import offered_tools
from forge.mcp.servers import McpServer
from forge.mcp.session import Session
from forge.runtime.options import checked_options
from forge.tools.decorator import Tool

AnyTools = tuple[Tool[..., object], ...]

_SERVER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,23}")
for _name in ("mcp", "client"):  # what the SDK logs must not reach the terminal of a program that has set up no logging
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpTools:
    """The tools of these servers; each tool's name begins with the name that its server has here.

    `async with McpTools({"time": Stdio(["mcp-server-time"])}) as tools:` connects to all servers at once; on leaving,
    the sessions are closed in reverse order. `with` does the same in code without an event loop, `until_exit` in a file
    that defines a workflow. The tools work in any thread and event loop. McpError, which names every server that cannot
    be reached, if one of them is `required`; DefinitionError for a wrong name.
    """

    @checked_options
    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        if wrong := [name for name in servers if not _SERVER.fullmatch(name)]:
            problem = "servers: {!r} is no name; write a letter, then letters, digits, _ or -, 24 at most"
            raise DefinitionError(tuple(map(problem.format, wrong)))
        self._servers = servers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self._begun = threading.Event()
        self._opened: Future[AnyTools] = Future()
        self._thread = threading.Thread(target=self._run, name="forge-mcp", daemon=True)

    def __repr__(self) -> str:
        """The names of the servers."""
        return f"McpTools({', '.join(self._servers)})"

    def __enter__(self) -> AnyTools:
        """Connect."""
        self._start()
        try:
            return self._opened.result()
        except BaseException:
            self._close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        self._close()

    async def __aenter__(self) -> AnyTools:
        """Connect."""
        self._start()
        try:
            return await asyncio.wrap_future(self._opened)
        except BaseException:
            await asyncio.to_thread(self._close)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await asyncio.to_thread(self._close)

    def until_exit(self) -> AnyTools:
        """Connect, and disconnect when the program ends."""
        tools = self.__enter__()
        atexit.register(self._close)
        return tools

    def _start(self) -> None:
        if self._opened.running() or self._opened.done():
            raise ForgeError("these MCP servers were connected already; make another McpTools")
        self._opened.set_running_or_notify_cancel()
        self._thread.start()
        self._begun.wait()

    def _close(self) -> None:
        serving, self._serving = self._serving, None  # to cancel it a second time would interrupt the closing
        if self._loop is not None and serving is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(serving.cancel)
        self._thread.join()

    def _run(self) -> None:
        """The life of the thread in which the sessions are: a long message does not stop the loops of others."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._serving = asyncio.get_running_loop(), asyncio.current_task()
        self._begun.set()
        sessions = [Session(name, server) for name, server in self._servers.items()]
        fault: BaseException | None = None
        try:
            await asyncio.gather(*(session.open() for session in sessions))
            self._opened.set_result(offered_tools(sessions))
            await self._loop.create_future()
        except BaseException as error:  # noqa: BLE001 - raised where the servers are entered, if they still are
            fault = error
        for session in reversed(sessions):
            await session.close()
        if self._opened.running():
            self._opened.set_exception(fault)
