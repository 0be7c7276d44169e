"""Conversions between MCP's values and forge's: servers, names, listings, answers, results, faults."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import assert_never

import msgspec
from mcp.client import Client, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    PaginatedRequestParams,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from returns.result import Failure, Result

from forge.errors import McpError, McpToolError, ToolFailed, ToolOutcomeUnknown, quantity
from forge.outcome import Finished, Halted
from forge.tools.definition import ToolOptions
from forge.workflow.workflow import Workflow
from stages.decoding import decode
from stages.effect import HandOff, NeedsInput, Said
from stages.options import Count, Options, Seconds, Tokens
from stages.schema.value import Json
from stages.state import Completed

# Names of servers' tools for a model: valid everywhere and unique.

_LONGEST = 64
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST = 6


def local_names(tools: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """The model's names for the tools, `SERVER_TOOL`, by server and the server's own names.

    Invalid characters become `_`. If that makes names equal, or a name is too long, each of them ends in a digest of
    the server's own name.
    """
    plain = {server: {name: _ILLEGAL.sub("_", f"{server}_{name}") for name in names} for server, names in tools.items()}
    shared = Counter(chain.from_iterable(names.values() for names in plain.values()))
    return {
        server: {
            name: short if shared[short] == 1 and len(short) <= _LONGEST else _marked(short, f"{server} {name}")
            for name, short in names.items()
        }
        for server, names in plain.items()
    }


def _marked(short: str, name: str) -> str:
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST]
    return f"{short[: _LONGEST - _DIGEST - 1]}_{digest}"


# Faults of calls to MCP servers, as exceptions of the tool.

UNREADABLE_ANSWER = -32099
"""Error code of our transports: the server's answer to the call cannot be read."""

UNREACHABLE = -32098
"""Error code of our transports: the call did not reach the server."""


def call_error(code: int, message: str, server: str, seconds: float, words: str) -> Exception:
    """The exception for a call without a result. `words` are the last output of the server.

    If the call may have taken effect, it is a ToolOutcomeUnknown, whose meaning depends on the tool.
    """
    who, said = f"the MCP server {server}", f" ({words})" if words else ""
    if code == REQUEST_TIMEOUT:
        return ToolOutcomeUnknown(f"{who} did not answer within {quantity(seconds, 'second')}{said}")
    if code == CONNECTION_CLOSED:
        return ToolOutcomeUnknown(f"the connection to {who} ended before it answered ({words or message})")
    if code in (UNREADABLE_ANSWER, PARSE_ERROR):
        return ToolFailed(f"{who} has answered, but its answer cannot be read: {message}.")
    if code == UNREACHABLE:
        return ToolFailed(f"{who} cannot be reached: {message}.")
    return McpToolError(f"{message}{said}")


# Answers: the end of a run as the result of an MCP tool.

ARGUMENT = "message"
"""The tool's argument: the user's request."""


def served_tool(workflow: Workflow, description: str) -> Tool:
    """The workflow as a tool that takes the user's message."""
    does = ", ".join(spec.name for spec in workflow.rules.tools)
    message = {"type": "string", "description": "The request, in full: nothing else of the conversation is known."}
    return Tool(
        name=_ILLEGAL.sub("_", workflow.name)[:64] or "workflow",
        description=description or f"Works on a request by itself, with these tools: {does}.",
        input_schema={"type": "object", "properties": {ARGUMENT: message}, "required": [ARGUMENT]},
    )


def tool_result(ended: Result[Finished, Halted]) -> CallToolResult:
    """The result for the client's model: the value, text or question; or the reason of a halt, as an error."""
    if isinstance(ended, Failure):
        return error_result(str(ended.failure()))
    match ended.unwrap().outcome:
        case Completed(value=value):
            decoded: object = msgspec.json.decode(value)
            structured = decoded if isinstance(decoded, dict) else None
            text = decoded if isinstance(decoded, str) else bytes(value).decode()
            return CallToolResult(content=[TextContent(text=text)], structured_content=structured)
        case Said(text=text):
            pass
        case NeedsInput(question=question, suggestions=suggestions):
            text = "\n- ".join((question, *suggestions))
        case HandOff(to=to, payload=payload):
            text = f"The request is to be handed over to {to}: {payload}"
        case other:
            assert_never(other)
    return CallToolResult(content=[TextContent(text=text)])


def error_result(why: str) -> CallToolResult:
    """An error with that message."""
    return CallToolResult(content=[TextContent(text=why)], is_error=True)


# Results of MCP tools: what the model sees, as text or as a JSON value.

_PROGRESS = 2_000
"""Maximum characters of a progress message."""

_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def content_of(result: CallToolResult) -> Json:
    """The content of the result: its JSON value if the text only repeats that; otherwise text.

    Images, audio and other bytes are represented by kind and size.
    """
    text = "\n".join(map(_text, result.content))
    if result.structured_content is None:
        return text
    value: Json = result.structured_content
    plain = all(isinstance(block, TextContent) for block in result.content)
    if isinstance(value, dict) and value.keys() == {"result"} and plain and text:
        return value["result"]  # the SDK wraps values that are not objects like this
    with suppress(msgspec.DecodeError):
        if not text or decode(_any, text) == value:
            return value
    return f"{text}\n{msgspec.json.encode(value).decode()}"


def _text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type}, {block.mime_type}, {_size(block.data)}: not shown]"
        case ResourceLink():
            return f"[resource {block.name}: {block.uri}]"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"[resource {resource.uri}]\n{resource.text}"
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return f"[resource {resource.uri}, {_size(resource.blob)}: not shown]"
        case _:
            raise TypeError(f"no kind of content: {block!r}")


def _size(data: str) -> str:
    """The size of base64-encoded data."""
    return f"{len(data) * 3 // 4:,} bytes"


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """A server's progress, in one line."""
    done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
    return f"{done}: {message[:_PROGRESS]}" if message else done


# MCP servers as data: a program to start, or an address.

_MESSAGE_LIMIT = 4 << 20
"""Default maximum bytes of a message; the rest of a longer one is read and dropped."""


class _ServerOptions(Options, frozen=True, kw_only=True):
    """Options of both kinds of servers."""

    only: Sequence[str] | None = None
    tools: Mapping[str, ToolOptions] = {}
    trust_hints: bool = False
    required: bool = True
    timeout: Seconds = 60.0
    connect_timeout: Seconds = 30.0
    message_limit: Tokens = _MESSAGE_LIMIT


class Stdio(_ServerOptions, frozen=True):
    """A program that speaks MCP on standard input and output: a list of words, run without a shell.

    It gets PATH, HOME and a few more variables of this process's environment, and all of `env`.

    `only` selects tools by the server's names; None: all. `tools` has options of `forge.tool` for single tools.
    `trust_hints` believes the server which tools only read and which are idempotent. `required=False`: continue without
    this server if it cannot be reached. `timeout` is the maximum seconds of a call, `connect_timeout` of the start;
    `message_limit` is the maximum bytes of a message. If the program has exited, the next call restarts it, at most
    `restarts` times.
    """

    command: Sequence[str]
    env: Mapping[str, str] = {}
    cwd: str | Path | None = None
    restarts: Count = 1

    def __repr__(self) -> str:
        """The program only; arguments and environment may hold secrets."""
        return f"Stdio([{', '.join(map(repr, self.command[:1]))}, …])"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets to mask in errors."""
        return tuple(self.env.values())


class Http(_ServerOptions, frozen=True):
    """A server at the address of its endpoint, such as `http://127.0.0.1:8000/mcp` (streamable HTTP).

    `headers` are sent with each request, for example a key. The other options are those of `Stdio`.
    """

    url: str
    headers: Mapping[str, str] = {}

    def __repr__(self) -> str:
        """Only the kind; address and headers may hold secrets."""
        return "Http(…)"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secrets to mask in errors."""
        words = (word for value in self.headers.values() for word in (value, *value.split()))
        return (self.url, *words)


McpServer = Stdio | Http


# The tools that a server listed when the session began, and which have changed since.

_PAGES = 100
"""Maximum pages of a tool list."""

_TOOLS = 1_000
"""Maximum tools of a server."""

_log = logging.getLogger("forge")


class Listing:
    """A server's tools as first listed. Tools that have changed since must not be called."""

    def __init__(self, server: str) -> None:
        self.tools: tuple[Tool, ...] = ()
        self._server = server
        self._changed = frozenset[str]()
        self._stale = False
        """Whether the tools may have changed since the last listing."""
        self._untold = False
        """Whether the server announces no changes: then list the tools before each call."""
        self._listing = asyncio.Lock()

    async def begin(self, client: Client) -> None:
        """List the tools for the first time; after a restart, compare them before the next call."""
        if self.tools:
            self._stale = True
        else:
            self.tools = await _listed(client)

    async def notice(self, message: IncomingMessage) -> None:
        """Note a change announced by the server; with the newest protocol, `watch` must subscribe to it."""
        if isinstance(message, ToolListChangedNotification):
            self._stale = True

    async def watch(self, client: Client) -> None:
        """Subscribe to tool changes of a server with the newest protocol."""
        offers = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (offers and offers.list_changed):
            return
        # The SDK raises a RuntimeError when the subscription ends.
        with suppress(MCPError, RuntimeError, TimeoutError):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._stale = True
        self._untold = self._stale = True

    async def is_changed(self, client: Client, tool: str) -> bool:
        """Whether the tool has changed or is gone. MCPError or ValidationError if the server gives no valid answer."""
        async with self._listing:
            if self._stale:
                self._stale = self._untold  # before the listing, as another change may be announced during it
                try:
                    now = {one.name: _definition(one) for one in await _listed(client)}
                except BaseException:
                    self._stale = True
                    raise
                changed = frozenset(one.name for one in self.tools if now.get(one.name) != _definition(one))
                if more := sorted(changed - self._changed):
                    text = "the MCP server %s has changed or removed tools that are in use: %s"
                    _log.warning(text, self._server, ", ".join(more))
                self._changed = changed
        return tool in self._changed


def _definition(tool: Tool) -> tuple[object, ...]:
    return tool.description, tool.input_schema, tool.annotations


async def _listed(client: Client) -> tuple[Tool, ...]:
    """All tools of the server; of several with the same name, the first."""
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
