"""The tools of MCP servers as tools of a workflow."""

import asyncio
import atexit
import logging
import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType

import msgspec
from mcp_types import Tool as ListedTool
from mcp_types import ToolAnnotations
from msgspec import Raw
from msgspec.structs import replace

from forge.errors import DefinitionError, ForgeError, McpError, ToolFailed, checked_options
from forge.mcp.protocol import McpServer, local_names, progress_text
from forge.mcp.session import McpSession
from forge.tools.definition import Explicit, Returned, Signature, Tool, ToolOptions, as_it_is, tell_unchecked, tool
from stages.decoding import sound
from stages.options import did_you_mean
from stages.schema.check import readable_schema

# Forge's tools for the connected servers, and mistakes in the user's options.

_UNHEARD = 256
"""Maximum progress messages of a call to queue; more are dropped."""

_log = logging.getLogger("forge")


def _offered_tools(sessions: Iterable[McpSession]) -> tuple[Tool[..., object], ...]:
    """The tools of these sessions, opened in the running event loop; they may be called from any other.

    McpError for required servers that were not reached, DefinitionError for unknown tools and options.
    """
    lost = [session for session in sessions if session.lost]
    if missed := [session.lost for session in lost if session.server.required]:
        raise McpError("\n".join(missed))
    for session in lost:
        _log.warning("going on without an MCP server: %s", session.lost)
    open_ones = {session.name: session for session in sessions if not session.lost}
    if wrong := tuple(problem for session in open_ones.values() for problem in _mistakes(session)):
        raise DefinitionError(wrong)
    loop = asyncio.get_running_loop()
    wanted = {
        name: [tool for tool in one.tools if (one.server.only is None or tool.name in one.server.only)]
        for name, one in open_ones.items()
    }
    names = local_names({name: [tool.name for tool in tools] for name, tools in wanted.items()})
    return tuple(
        _forge_tool(tool, names[name][tool.name], open_ones[name].server, _function(open_ones[name], tool.name, loop))
        for name, tools in wanted.items()
        for tool in tools
    )


def _forge_tool(
    listed: ListedTool, name: str, server: McpServer, function: Callable[..., AsyncGenerator[object, None]]
) -> Tool[..., object]:
    """The tool under that name. The model sees the schema unchanged; it is checked as far as forge can read it."""
    schema = Raw(msgspec.json.encode(listed.input_schema))
    checked = readable_schema(schema)
    tell_unchecked(name, checked)
    # A schema that is not an object with properties would be useless to a model.
    shown = schema if isinstance(listed.input_schema.get("properties", {}), dict) else checked
    signature = Signature(name=name, description=sound(listed.description or listed.title or ""), parameters=shown)
    own = server.tools.get(listed.name, {})
    options: ToolOptions = {**_hinted(listed.annotations or ToolAnnotations(), trusted=server.trust_hints), **own}
    made = tool(name=name, **options)(Explicit(function, signature, as_it_is))
    spec = made.spec if bytes(checked) == bytes(shown) else replace(made.spec, checked=checked)
    return Tool(made.function, spec, made.problems)


def _hinted(hints: ToolAnnotations, *, trusted: bool) -> ToolOptions:
    """The effect of the server's hints; untrusted hints can only add caution.

    https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations
    """
    reads = hints.read_only_hint is True
    if trusted and reads:
        return {"effect": "read"}
    options: ToolOptions = {"approval": True} if hints.destructive_hint is True else {}
    return {**options, "idempotent": True} if trusted and hints.idempotent_hint is True else options


def _mistakes(session: McpSession) -> Iterator[str]:
    """Options for tools that the server does not have, and unknown options of a tool."""
    known, options = [one.name for one in session.tools], ToolOptions.__annotations__
    for name in dict.fromkeys((*(session.server.only or ()), *session.server.tools)):
        if name not in known:
            there, meant = ", ".join(known) or "none", did_you_mean(name, known)
            yield f"server {session.name}: it has no tool {name!r}; it has: {there}.{meant}"
    for name, given in session.server.tools.items():
        for one in (one for one in given if one not in options):
            there, meant = ", ".join(options), did_you_mean(one, options)
            yield f"server {session.name}: the tool {name} has no option {one!r}; there are: {there}.{meant}"


def _function(
    session: McpSession, name: str, home: asyncio.AbstractEventLoop
) -> Callable[..., AsyncGenerator[object, None]]:
    """The function of a tool: yields the server's progress, then the result."""

    async def call(**arguments: object) -> AsyncGenerator[object, None]:
        here, heard = asyncio.get_running_loop(), asyncio.Queue[str | None]()

        def tell(text: str) -> None:
            if heard.qsize() < _UNHEARD:
                heard.put_nowait(text)

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            here.call_soon_threadsafe(tell, progress_text(progress, total, message))

        # Run in the sessions' loop, unless that has ended.
        work = session.call(name, arguments, hear)
        if not home.is_running():
            work.close()
            raise ToolFailed("the sessions with the MCP servers are closed.")
        answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))
        answer.add_done_callback(lambda _: heard.put_nowait(None))
        try:
            while (text := await heard.get()) is not None:
                yield text
            yield Returned(answer.result())
        finally:
            answer.cancel()

    return call


# McpTools: the tools of MCP servers, as long as the sessions are open.

_AnyTools = tuple[Tool[..., object], ...]

_SERVER = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,23}")
for _name in ("mcp", "client"):  # keep the SDK's log messages off the terminal if logging is not configured
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpTools:
    """The tools of these servers; each tool's name begins with its server's name here.

    `async with McpTools({"time": Stdio(["mcp-server-time"])}) as tools:` connects to all servers at once; leaving
    closes the sessions in reverse order. Without an event loop use `with`; in a file that defines a workflow,
    `until_exit`. The tools work in any thread and event loop. McpError, naming every server that cannot be reached, if
    one of them is `required`; DefinitionError for an invalid name.
    """

    @checked_options
    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        if wrong := [name for name in servers if not _SERVER.fullmatch(name)]:
            problem = "servers: {!r} is not a valid name; write a letter, then letters, digits, _ or -, 24 at most"
            raise DefinitionError(tuple(map(problem.format, wrong)))
        self._servers = servers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Task[None] | None = None
        self._begun = threading.Event()
        self._opened: Future[_AnyTools] = Future()
        # A thread of their own, so that a long message does not block other event loops.
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="forge-mcp", daemon=True)

    def __repr__(self) -> str:
        """The names of the servers."""
        return f"McpTools({', '.join(self._servers)})"

    def __enter__(self) -> _AnyTools:
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

    async def __aenter__(self) -> _AnyTools:
        """Connect."""
        self._start()
        try:
            return await asyncio.wrap_future(self._opened)
        except BaseException:
            await asyncio.to_thread(self._close)
            raise

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""
        await asyncio.to_thread(self._close)

    def until_exit(self) -> _AnyTools:
        """Connect, and disconnect when the program exits."""
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
        serving, self._serving = self._serving, None  # a second cancellation would interrupt the closing
        if self._loop is not None and serving is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(serving.cancel)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._serving = asyncio.get_running_loop(), asyncio.current_task()
        self._begun.set()
        sessions = [McpSession(name, server) for name, server in self._servers.items()]
        fault: BaseException | None = None
        try:
            await asyncio.gather(*(session.open() for session in sessions))
            self._opened.set_result(_offered_tools(sessions))
            await self._loop.create_future()
        except BaseException as error:  # noqa: BLE001 - raised where the servers are entered, if they still are
            fault = error
        for session in reversed(sessions):
            await session.close()
        if self._opened.running():
            self._opened.set_exception(fault)
