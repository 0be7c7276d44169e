"""MCP servers as data: a program to start, or an address; and what is known of their tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from forge.tools.definition import ToolOptions
from stages.options import Count, Options, Seconds, Tokens

MESSAGE_LIMIT = 4 << 20
"""Maximum bytes of one message, unless the server says otherwise; the rest of a longer one is read and dropped."""


class ServerOptions(Options, frozen=True, kw_only=True):
    """What both kinds of servers have."""

    only: Sequence[str] | None = None
    tools: Mapping[str, ToolOptions] = {}
    trust_hints: bool = False
    required: bool = True
    timeout: Seconds = 60.0
    connect_timeout: Seconds = 30.0
    message_limit: Tokens = MESSAGE_LIMIT


class Stdio(ServerOptions, frozen=True):
    """A program that speaks MCP on its standard input and output: a list of words, which no shell reads.

    Of this process's environment it is given PATH, HOME and a few more, and all of `env`.

    `only` names the tools to have, as the server names them; None: all. `tools` has options of `forge.tool` for single
    tools. `trust_hints` takes the server's word for which tools only read and which are idempotent. `required=False`:
    go on without this server where it cannot be reached. `timeout` is the maximum seconds of a call, `connect_timeout`
    of the start; `message_limit` the maximum bytes of one message. If the program has ended, the next call starts it
    again, `restarts` times at most.
    """

    command: Sequence[str]
    env: Mapping[str, str] = {}
    cwd: str | Path | None = None
    restarts: Count = 1

    def __repr__(self) -> str:
        """The program; the other words and the environment may hold secrets."""
        return f"Stdio([{', '.join(map(repr, self.command[:1]))}, …])"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no error may show."""
        return tuple(self.env.values())


class Http(ServerOptions, frozen=True):
    """A server at the address of its endpoint, such as `http://127.0.0.1:8000/mcp` (streamable HTTP).

    `headers` are sent with each request, such as one with a key. The other options are those of `Stdio`.
    """

    url: str
    headers: Mapping[str, str] = {}

    def __repr__(self) -> str:
        """The kind alone: addresses and headers may hold secrets."""
        return "Http(…)"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no error may show."""
        words = (word for value in self.headers.values() for word in (value, *value.split()))
        return (self.url, *words)


McpServer = Stdio | Http
